-- A tenant's next jobs, with all that a worker is handed.
SELECT
    r.priority, r.job_id, r.available_at, r.version, r.attempt, r.counted_attempts, r.crashes, r.is_alone,
    r.started_at, r.updated_at,
    j.operation_version, j.max_attempts, j.created_at, j.deadline_at, j.correlation_id, j.traceparent, j.chain_id,
    j.redrive_of, p.body
FROM ready AS r
JOIN job AS j ON j.id = r.job_id
JOIN payload AS p ON p.job_id = r.job_id
WHERE r.operation = :operation AND r.tenant = :tenant
ORDER BY r.priority, r.job_id
LIMIT :limit
