-- How many of a tenant's jobs run, in an operation or ('') in all of them, which are found by one seek each.
WITH RECURSIVE seen (operation) AS (
    SELECT (SELECT min(operation) FROM lease)
    UNION ALL
    SELECT (SELECT min(l.operation) FROM lease AS l WHERE l.operation > seen.operation)
    FROM seen
    WHERE seen.operation IS NOT NULL
)
SELECT s.tenant, s.operation, (
    SELECT count(*) FROM seen JOIN lease AS l ON l.operation = seen.operation AND l.tenant = s.tenant
    WHERE s.operation IN ('', seen.operation)
)
FROM unnest($1::text[], $2::text[]) AS s (tenant, operation)
