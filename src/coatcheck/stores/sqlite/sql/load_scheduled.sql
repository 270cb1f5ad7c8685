INSERT INTO scheduled (
    available_at, job_id, operation, tenant, priority, version, attempt, counted_attempts, crashes, is_alone,
    started_at, updated_at
)
VALUES (
    :available_at, :job_id, :operation, :tenant, :priority, :version, :attempt, :counted_attempts, :crashes,
    :is_alone, :started_at, :updated_at
)
