-- The operations that have waiting work, one index seek each.
WITH RECURSIVE seen (operation) AS (
    SELECT (SELECT min(t.operation) FROM turn AS t WHERE t.is_waiting)
    UNION ALL
    SELECT (SELECT min(t.operation) FROM turn AS t WHERE t.is_waiting AND t.operation > seen.operation)
    FROM seen
    WHERE seen.operation IS NOT NULL
)
SELECT operation FROM seen WHERE operation IS NOT NULL
