-- Without the end, which is an instant of this database's clock.
SELECT
    job_id, operation, tenant, priority, token, worker_id, available_at, version, attempt, counted_attempts,
    crashes, is_alone, started_at, attempt_started_at, updated_at, progress_fraction, progress_message,
    cancel_requested, cancel_reason
FROM lease
ORDER BY job_id
