-- Whose turns are next in each operation, and how many jobs each of them has, as far as it matters; with every row, when
-- the next job that waits for its time is due. Nothing is locked: what two claimers both see here, only one takes.
SELECT w.operation, t.tenant, t.vstart, r.waiting, (SELECT min(available_at) FROM scheduled) AS next_due_at
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS w (operation, turns, jobs)
LEFT JOIN LATERAL (
    SELECT tenant, vstart FROM turn
    WHERE operation = w.operation AND is_waiting AND NOT is_held
    ORDER BY vstart, tenant LIMIT w.turns
) AS t ON true
LEFT JOIN LATERAL (
    SELECT count(*) AS waiting FROM (
        SELECT 1 FROM ready WHERE operation = w.operation AND tenant = t.tenant LIMIT w.jobs
    ) AS few
) AS r ON true
ORDER BY w.operation, t.vstart, t.tenant
