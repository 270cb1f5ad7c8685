-- As end_lease, for a lease whose heartbeat has not moved since it was looked at.
DELETE FROM lease
WHERE job_id = :job_id AND token = :token AND beat = :beat
RETURNING
    operation, tenant, priority, available_at, version, attempt, counted_attempts, crashes, is_alone, started_at,
    attempt_started_at, cancel_requested, cancel_reason
