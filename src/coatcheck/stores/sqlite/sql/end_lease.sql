-- The token is the fence: whoever deletes this row has the right to write the outcome, and nobody else has.
DELETE FROM lease
WHERE job_id = :job_id AND attempt = :attempt AND token = :token
RETURNING
    operation, tenant, priority, available_at, version, attempt, counted_attempts, crashes, is_alone, started_at,
    attempt_started_at, cancel_requested, cancel_reason
