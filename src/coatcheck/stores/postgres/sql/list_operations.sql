-- The operations in which a tenant has jobs, one index seek each.
WITH RECURSIVE seen (operation) AS (
    SELECT (SELECT min(j.operation) FROM job AS j WHERE j.tenant = $1)
    UNION ALL
    SELECT (SELECT min(j.operation) FROM job AS j WHERE j.tenant = $1 AND j.operation > seen.operation)
    FROM seen
    WHERE seen.operation IS NOT NULL
)
SELECT operation FROM seen WHERE operation IS NOT NULL
