-- The next entry comes after those that were put here with their numbers.
SELECT setval(pg_get_serial_sequence('audit', 'seq'), (SELECT max(seq) FROM audit)) FROM audit LIMIT 1
