-- Any number of reads of one job each, in one round trip. Expiry is decided by the reader of the row; the body comes
-- along only where it may stand inline. Where there is no job, its tombstone may be.
SELECT
    w.n AS wish, t.job_id AS buried, t.operation AS buried_operation, t.expired_at AS buried_at, n.tombstone_until,
    n.id, n.tenant, n.operation, n.operation_version, n.status, n.version, n.attempt, n.counted_attempts, n.max_attempts,
    n.priority, n.created_at, n.updated_at, n.available_at, n.correlation_id, n.chain_id, n.started_at, n.finished_at,
    n.deadline_at, n.expires_at, n.result_expires_at, n.progress_fraction, n.progress_message, n.cancel_requested,
    n.cancel_reason, n.error_category, n.error_detail, n.error_code, n.error_operator_detail, n.dead_lettered_at,
    n.traceparent, n.redrive_of, n.redriven_as, n.result_type, n.result_bytes,
    CASE
        WHEN n.result_type = 'application/json' AND n.result_bytes <= $4 AND n.result_expires_at > w.now
        THEN (SELECT body FROM result WHERE job_id = n.id)
    END AS inline_result
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (job_id, tenant, now, n)
LEFT JOIN job_now AS n ON n.id = w.job_id AND n.tenant = w.tenant
LEFT JOIN tombstone AS t ON n.id IS NULL AND t.job_id = w.job_id AND t.tenant = w.tenant AND t.kept_until > w.now
WHERE n.id IS NOT NULL OR t.job_id IS NOT NULL
