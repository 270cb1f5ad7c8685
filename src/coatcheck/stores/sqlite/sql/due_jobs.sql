SELECT
    job_id, operation, tenant, priority, available_at, version, attempt, counted_attempts, crashes, is_alone, started_at,
    updated_at
FROM scheduled WHERE available_at <= :now ORDER BY available_at, job_id LIMIT :limit
