-- For this transaction only: what it writes may be lost with the server, since it is found out again.
SELECT set_config('synchronous_commit', 'off', true)
