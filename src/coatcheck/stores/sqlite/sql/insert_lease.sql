INSERT INTO lease (
    job_id, operation, tenant, priority, token, worker_id, available_at, version, attempt, counted_attempts, crashes,
    is_alone, started_at, attempt_started_at, updated_at
)
SELECT * FROM (
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
) WHERE column1 IS NOT NULL
