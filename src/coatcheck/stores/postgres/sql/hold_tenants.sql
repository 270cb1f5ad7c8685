-- What is counted for these tenants stays as it was counted until this transaction ends: others that count for one of
-- them wait. In one order of locks, which is not that of names: two names may share a lock.
SELECT pg_advisory_xact_lock($1, h.lock)
FROM (SELECT DISTINCT hashtext(u.tenant) AS lock FROM unnest($2::text[]) AS u (tenant) ORDER BY lock) AS h
