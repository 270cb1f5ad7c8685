INSERT INTO ready (
    operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone,
    started_at, updated_at
)
VALUES (
    :operation, :tenant, :priority, :job_id, :available_at, :version, :attempt, :counted_attempts, :crashes,
    :is_alone, :started_at, :updated_at
)
