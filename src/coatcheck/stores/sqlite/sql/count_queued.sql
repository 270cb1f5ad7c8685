-- How many of a tenant's jobs wait, in an operation or ('') in all of them: those that are ready, as its turns count
-- them, and those whose time has not come. Operations are found by one seek each: there are few, and many tenants.
WITH RECURSIVE seen (operation) AS (
    SELECT (SELECT min(operation) FROM turn)
    UNION ALL
    SELECT (SELECT min(t.operation) FROM turn AS t WHERE t.operation > seen.operation)
    FROM seen
    WHERE seen.operation IS NOT NULL
)
SELECT json_group_array(json_array(
    column1,
    column2,
    (
        SELECT coalesce(sum(t.waiting), 0)
        FROM seen CROSS JOIN turn AS t ON t.operation = seen.operation AND t.tenant = column1
        WHERE column2 IN ('', seen.operation)
    ) + (
        SELECT count(*) FROM scheduled AS s WHERE s.tenant = column1 AND (column2 = '' OR s.operation = column2)
    )
))
FROM (
VALUES (?, ?)
) AS asked
WHERE column1 IS NOT NULL
