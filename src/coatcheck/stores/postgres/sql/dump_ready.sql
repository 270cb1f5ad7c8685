SELECT
    operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone,
    started_at, updated_at
FROM ready
ORDER BY operation, tenant, priority, job_id
