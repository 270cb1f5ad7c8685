-- As end_leases, for a lease whose heartbeat has not moved since it was looked at.
DELETE FROM lease
WHERE job_id = :job_id AND token = :token AND beat = :beat
RETURNING
    job_id, attempt, token, operation, tenant, priority, available_at, version, counted_attempts, crashes, is_alone,
    started_at, attempt_started_at, cancel_requested, cancel_reason
