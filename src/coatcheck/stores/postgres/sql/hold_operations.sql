-- Claims of an operation with a bound of its own go one after the other, each until its commit: what is running is
-- counted after this, by a statement that sees what the one before has committed. In one order of locks, whatever
-- operations share one.
SELECT pg_advisory_xact_lock($1, h.lock)
FROM (SELECT DISTINCT hashtext(u.operation) AS lock FROM unnest($2::text[]) AS u (operation) ORDER BY lock) AS h
