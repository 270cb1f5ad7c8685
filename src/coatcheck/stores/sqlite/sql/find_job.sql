-- Expiry is decided by the reader of the row; the body comes along only where it may stand inline.
SELECT
    n.id, n.tenant, n.operation, n.operation_version, n.status, n.version, n.attempt, n.counted_attempts, n.max_attempts,
    n.priority, n.created_at, n.updated_at, n.available_at, n.correlation_id, n.chain_id, n.started_at, n.finished_at,
    n.deadline_at, n.expires_at, n.result_expires_at, n.progress_fraction, n.progress_message, n.cancel_requested,
    n.cancel_reason, n.error_category, n.error_detail, n.error_code, n.error_operator_detail, n.dead_lettered_at,
    n.traceparent, n.redrive_of, n.redriven_as, n.result_type, n.result_bytes,
    CASE
        WHEN n.result_type = 'application/json' AND n.result_bytes <= :inline_max AND n.result_expires_at > :now
        THEN (SELECT body FROM result WHERE job_id = n.id)
    END AS inline_result,
    n.tombstone_until
FROM job_now AS n
WHERE n.id = :job_id AND n.tenant = :tenant
