-- Those about whom something was decided.
SELECT name, weight, is_paused, revocation, by_operation FROM tenant WHERE weight <> 1 OR is_paused OR revocation IS NOT NULL
