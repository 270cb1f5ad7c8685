-- Whose turns are next in each operation, and how many jobs each of them has, as far as it matters. Nothing is locked:
-- what two claimers both see here, only one of them takes.
SELECT w.operation, t.tenant, t.vstart, r.waiting
FROM unnest($1::text[], $2::bigint[]) AS w (operation, free)
CROSS JOIN LATERAL (
    SELECT tenant, vstart FROM turn
    WHERE operation = w.operation AND is_waiting
    ORDER BY vstart, tenant LIMIT w.free
) AS t
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting FROM (
        SELECT 1 FROM ready WHERE operation = w.operation AND tenant = t.tenant LIMIT w.free
    ) AS few
) AS r
ORDER BY w.operation, t.vstart, t.tenant
