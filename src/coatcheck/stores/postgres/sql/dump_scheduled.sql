SELECT
    available_at, job_id, operation, tenant, priority, version, attempt, counted_attempts, crashes, is_alone,
    started_at, updated_at
FROM scheduled
ORDER BY available_at, job_id
