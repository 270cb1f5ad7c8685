-- A primary that was demoted still answers reads: health is to be able to write.
SELECT NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off'
