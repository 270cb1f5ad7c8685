-- One that comes back is level with the tenant that is next, as a newcomer is, and not before its own last turn. Locked in
-- one order.
WITH held AS (
    SELECT t.operation, t.tenant
    FROM turn AS t JOIN unnest($1::text[], $2::text[]) AS h (operation, tenant)
        ON t.operation = h.operation AND t.tenant = h.tenant
    WHERE t.is_held
    ORDER BY t.operation, t.tenant
    FOR NO KEY UPDATE OF t
),
levels AS (
    SELECT o.operation, coalesce(
        (
            SELECT t.vstart FROM turn AS t
            WHERE t.operation = o.operation AND t.is_waiting AND NOT t.is_held ORDER BY t.vstart, t.tenant LIMIT 1
        ),
        (SELECT t.vstart FROM turn AS t WHERE t.operation = o.operation AND t.is_held ORDER BY t.vstart DESC LIMIT 1)
    ) AS level
    FROM (SELECT DISTINCT operation FROM held) AS o
)
UPDATE turn AS t SET is_held = false, vstart = greatest(t.vstart, l.level)
FROM held AS h JOIN levels AS l ON l.operation = h.operation
WHERE t.operation = h.operation AND t.tenant = h.tenant
