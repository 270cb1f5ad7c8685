-- How many of a tenant's jobs wait, in an operation or ('') in all of them: ready, before their time, and, with $3, in the
-- inbox. Whoever has a ready job has a turn: from turns the operations are found by one seek each.
WITH RECURSIVE seen (operation) AS (
    SELECT (SELECT min(operation) FROM turn)
    UNION ALL
    SELECT (SELECT min(t.operation) FROM turn AS t WHERE t.operation > seen.operation)
    FROM seen
    WHERE seen.operation IS NOT NULL
)
SELECT s.tenant, s.operation, (
    (
        SELECT count(*) FROM seen JOIN ready AS r ON r.operation = seen.operation AND r.tenant = s.tenant
        WHERE s.operation IN ('', seen.operation)
    ) + (
        SELECT count(*) FROM scheduled AS w WHERE w.tenant = s.tenant AND (s.operation = '' OR w.operation = s.operation)
    ) + (
        SELECT count(*) FROM inbox AS i
        WHERE $3 AND i.tenant = s.tenant AND (s.operation = '' OR i.operation = s.operation)
    )
)
FROM unnest($1::text[], $2::text[]) AS s (tenant, operation)
