-- What an answered commit is worth here. That stays so for this session, whatever the server is told later; with $1,
-- which is for a session that is lent, for this transaction only.
SELECT
    current_setting('server_version_num')::integer, current_setting('server_version'),
    set_config('synchronous_commit', current_setting('synchronous_commit'), $1), current_setting('fsync'),
    pg_is_in_recovery()
