-- A job that no submission brought: its payload is that of the job it came from, unless another is given.
WITH jobs AS (
    INSERT INTO job (
        id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at,
        correlation_id, traceparent, chain_id, redrive_of, updated_at
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $7)
)
INSERT INTO payload (job_id, body) SELECT $1, coalesce($13::bytea, body) FROM payload WHERE job_id = $12
