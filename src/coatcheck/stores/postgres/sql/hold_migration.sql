-- One process migrates at a time; the lock goes with its transaction, however that ends.
SELECT pg_advisory_xact_lock($1, $2)
