SELECT
    id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
    correlation_id, traceparent, chain_id, redrive_of, redriven_as, key_expires_at, status, version, attempt,
    counted_attempts, started_at, updated_at, finished_at, expires_at, result_expires_at, tombstone_until,
    cancel_requested, cancel_reason, dead_lettered_at, error_category, error_detail, error_code,
    error_operator_detail, result_type, result_bytes
FROM job
ORDER BY id
