-- What an answered commit is worth here.
SELECT
    current_setting('server_version_num')::integer, current_setting('server_version'),
    current_setting('synchronous_commit'), current_setting('fsync'), pg_is_in_recovery()
