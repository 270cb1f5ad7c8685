-- Nobody keeps it alive any more: its beat stands still, and a rescuer ends it after a lease time.
INSERT INTO lease (
    job_id, operation, tenant, priority, token, worker_id, available_at, version, attempt, counted_attempts,
    crashes, is_alone, started_at, attempt_started_at, updated_at, progress_fraction, progress_message,
    cancel_requested, cancel_reason
)
VALUES (
    :job_id, :operation, :tenant, :priority, :token, :worker_id, :available_at, :version, :attempt,
    :counted_attempts, :crashes, :is_alone, :started_at, :attempt_started_at, :updated_at, :progress_fraction,
    :progress_message, :cancel_requested, :cancel_reason
)
