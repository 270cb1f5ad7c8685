-- Takes each tenant's next jobs, with all that a worker is handed. Rows that another claimer has are stepped over:
-- several may serve one tenant, and none waits for another.
WITH picked AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS p (operation, tenant, wanted)
),
taken AS MATERIALIZED (
    SELECT r.*
    FROM picked AS p
    CROSS JOIN LATERAL (
        SELECT ctid AS place, * FROM ready
        WHERE operation = p.operation AND tenant = p.tenant
        ORDER BY priority, job_id LIMIT p.wanted
        FOR UPDATE SKIP LOCKED
    ) AS r
),
gone AS (
    -- By their places, since nobody moves a row that is locked: no other way to them may look cheaper to the planner.
    DELETE FROM ready AS r USING taken AS t WHERE r.ctid = t.place
)
SELECT
    t.operation, t.tenant, t.priority, t.job_id, t.available_at, t.version, t.attempt, t.counted_attempts, t.crashes,
    t.is_alone, t.started_at, t.updated_at, j.operation_version, j.max_attempts, j.created_at, j.deadline_at,
    j.correlation_id, j.traceparent, j.chain_id, j.redrive_of, p.body
FROM taken AS t
JOIN job AS j ON j.id = t.job_id
JOIN payload AS p ON p.job_id = t.job_id
ORDER BY t.operation, t.tenant, t.priority, t.job_id
