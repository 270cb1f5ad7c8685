-- They stay at their level; the jobs that wait in them stay where they are. Locked in one order.
WITH held AS (
    SELECT t.operation, t.tenant
    FROM turn AS t JOIN unnest($1::text[], $2::text[]) AS h (operation, tenant)
        ON t.operation = h.operation AND t.tenant = h.tenant
    WHERE t.is_waiting
    ORDER BY t.operation, t.tenant
    FOR NO KEY UPDATE OF t
)
UPDATE turn AS t SET is_held = true
FROM held AS h WHERE t.operation = h.operation AND t.tenant = h.tenant
