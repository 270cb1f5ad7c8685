-- Final is final: a job that has a status keeps it.
WITH ended (
    job_id, status, version, attempt, counted_attempts, started_at, available_at, finished_at, expires_at,
    result_expires_at, tombstone_until, cancel_requested, cancel_reason, dead_lettered_at, error_category,
    error_detail, error_code, error_operator_detail, result_type, result_bytes
) AS (
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
)
UPDATE job
SET status = ended.status, version = ended.version, attempt = ended.attempt,
    counted_attempts = ended.counted_attempts, started_at = ended.started_at, available_at = ended.available_at,
    updated_at = ended.finished_at, finished_at = ended.finished_at, expires_at = ended.expires_at,
    result_expires_at = ended.result_expires_at,
    -- A tombstone lives at least as long as the key that may still point to it.
    tombstone_until = max(ended.tombstone_until, coalesce(job.key_expires_at, 0)),
    cancel_requested = ended.cancel_requested, cancel_reason = ended.cancel_reason,
    dead_lettered_at = ended.dead_lettered_at, error_category = ended.error_category,
    error_detail = ended.error_detail, error_code = ended.error_code,
    error_operator_detail = ended.error_operator_detail, result_type = ended.result_type,
    result_bytes = ended.result_bytes
FROM ended
WHERE job.id = ended.job_id AND job.status IS NULL
