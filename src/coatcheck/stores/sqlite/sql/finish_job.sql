-- Final is final: a job that has a status keeps it.
UPDATE job
SET status = :status, version = :version, attempt = :attempt, counted_attempts = :counted_attempts,
    started_at = :started_at, available_at = :available_at, updated_at = :now, finished_at = :now,
    expires_at = :expires_at, result_expires_at = :result_expires_at,
    -- A tombstone lives at least as long as the key that may still point to it.
    tombstone_until = max(:tombstone_until, coalesce(key_expires_at, 0)),
    cancel_requested = :cancel_requested, cancel_reason = :cancel_reason, dead_lettered_at = :dead_lettered_at,
    error_category = :error_category, error_detail = :error_detail, error_code = :error_code,
    error_operator_detail = :error_operator_detail, result_type = :result_type, result_bytes = :result_bytes
WHERE id = :job_id AND status IS NULL
