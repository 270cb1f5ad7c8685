-- Of this engine, on this database, but for the one that asks.
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'coatcheck' AND pid <> pg_backend_pid()
