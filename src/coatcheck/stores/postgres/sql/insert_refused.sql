-- Jobs that were handed in and may not run: they get their record, to be ended at once, and no place in the queue.
WITH refused AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::integer[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::text[], $11::text[], $12::bytea[]
    ) AS r (
        job_id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
        correlation_id, traceparent, payload
    )
),
payloads AS (
    INSERT INTO payload (job_id, body) SELECT job_id, payload FROM refused
)
INSERT INTO job (
    id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
    correlation_id, traceparent, chain_id, updated_at
)
SELECT
    job_id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
    correlation_id, traceparent, job_id, created_at
FROM refused
