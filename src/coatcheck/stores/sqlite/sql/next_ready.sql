SELECT
    r.job_id, r.priority, r.available_at, r.version, r.attempt, r.counted_attempts, r.crashes, r.is_alone, r.started_at
FROM ready AS r
WHERE r.operation = :operation AND r.tenant = :tenant
ORDER BY r.priority, r.job_id
LIMIT 1
