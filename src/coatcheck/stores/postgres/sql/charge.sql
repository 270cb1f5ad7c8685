-- What jobs just accepted cost: noted for each of them, and added up in their tenants' windows, in one order of rows.
WITH charges AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
        AS c (job_id, tenant, operation, kind, units, window_ms, window_at)
),
costs AS (
    INSERT INTO job_cost (job_id, kind, charged, spent, attempt, number, window_ms, window_at)
    SELECT job_id, kind, units, 0, 0, 0, window_ms, window_at FROM charges
)
INSERT INTO spending AS s (tenant, kind, window_ms, window_at, operation, charged, spent)
SELECT tenant, kind, window_ms, window_at, operation, least(sum(units), $8::bigint)::bigint, 0 FROM charges
GROUP BY tenant, kind, window_ms, window_at, operation
ORDER BY tenant, kind, window_ms, window_at, operation
ON CONFLICT (tenant, kind, window_ms, window_at, operation) DO UPDATE
SET charged = least(s.charged + excluded.charged, $8::bigint)
