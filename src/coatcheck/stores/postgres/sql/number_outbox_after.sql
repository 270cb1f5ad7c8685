-- The next entry comes after those that were put here with their numbers.
SELECT setval(pg_get_serial_sequence('outbox', 'seq'), (SELECT max(seq) FROM outbox)) FROM outbox LIMIT 1
