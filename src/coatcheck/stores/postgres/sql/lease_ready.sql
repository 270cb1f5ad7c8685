-- Takes each tenant's next jobs and leases them, with all that a worker is handed. Rows that another claimer has are
-- stepped over: several may serve one tenant, and none waits for another.
WITH picked AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
        AS p (operation, tenant, wanted, queue_limit_ms)
),
taken AS MATERIALIZED (
    SELECT r.*, p.queue_limit_ms
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
),
-- Jobs that came too late to start get no lease; those whose tenant was in quarantine meanwhile are excused. The caller
-- read its clock before its turn came: another process may have made the job, or found it due, since.
found AS MATERIALIZED (
    SELECT
        t.*, j.operation_version, j.max_attempts, j.created_at, j.deadline_at, j.correlation_id, j.traceparent,
        j.chain_id, j.redrive_of, gen_random_uuid()::text AS token, greatest($5::bigint, t.available_at) AS begins_at,
        coalesce(j.deadline_at <= $5, false) OR coalesce(
            t.attempt = 0 AND t.available_at + t.queue_limit_ms <= $5 AND NOT EXISTS (
                SELECT 1 FROM tenant AS n WHERE n.name = t.tenant AND n.restored_at > $5 - t.queue_limit_ms
            ),
            false
        ) AS is_late
    FROM taken AS t JOIN job AS j ON j.id = t.job_id
),
-- A lease ends by the database's clock, read when the row is written: clock_timestamp(), since now() is when the
-- transaction began. $7 takes its place where a test moves time by hand.
leased AS (
    INSERT INTO lease (
        job_id, operation, tenant, priority, token, worker_id, available_at, version, attempt, counted_attempts,
        crashes, is_alone, started_at, attempt_started_at, updated_at, ends_at
    )
    SELECT
        job_id, operation, tenant, priority, token, $6, available_at, version + 1, attempt + 1, counted_attempts + 1,
        crashes, is_alone, coalesce(started_at, begins_at), begins_at, begins_at,
        coalesce($7::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $8::bigint
    FROM found WHERE NOT is_late
)
SELECT
    f.operation, f.tenant, f.priority, f.job_id, f.available_at, f.version, f.attempt, f.counted_attempts, f.crashes,
    f.is_alone, f.started_at, f.updated_at, f.operation_version, f.max_attempts, f.created_at, f.deadline_at,
    f.correlation_id, f.traceparent, f.chain_id, f.redrive_of, p.body, f.token, f.begins_at, f.is_late
FROM found AS f JOIN payload AS p ON p.job_id = f.job_id
ORDER BY f.operation, f.tenant, f.priority, f.job_id
