-- Any number of reads of one job each, in one round trip. Expiry is decided by the reader of the row; the body comes
-- along only where it may stand inline. Where there is no job, its tombstone may be, or it is still in the inbox: one
-- snapshot shows it in one place only.
SELECT
    w.n AS wish, t.job_id AS buried, t.operation AS buried_operation, t.expired_at AS buried_at, n.tombstone_until,
    coalesce(n.id, i.job_id) AS id, coalesce(n.tenant, i.tenant) AS tenant,
    coalesce(n.operation, i.operation) AS operation,
    coalesce(n.operation_version, i.operation_version) AS operation_version, coalesce(n.status, 'queued') AS status,
    coalesce(n.version, 1) AS version, coalesce(n.attempt, 0) AS attempt,
    coalesce(n.counted_attempts, 0) AS counted_attempts, coalesce(n.max_attempts, i.max_attempts) AS max_attempts,
    coalesce(n.priority, i.priority) AS priority, coalesce(n.created_at, i.created_at) AS created_at,
    coalesce(n.updated_at, i.created_at) AS updated_at, coalesce(n.available_at, i.available_at) AS available_at,
    coalesce(n.correlation_id, i.correlation_id) AS correlation_id, coalesce(n.chain_id, i.job_id) AS chain_id,
    n.started_at, n.finished_at, coalesce(n.deadline_at, i.deadline_at) AS deadline_at, n.expires_at,
    n.result_expires_at, n.progress_fraction, n.progress_message,
    coalesce(n.cancel_requested, false) AS cancel_requested, n.cancel_reason, n.error_category, n.error_detail,
    n.error_code, n.error_operator_detail, n.dead_lettered_at, coalesce(n.traceparent, i.traceparent) AS traceparent,
    n.redrive_of, n.redriven_as, n.result_type, n.result_bytes,
    CASE
        WHEN n.result_type = 'application/json' AND n.result_bytes <= $4 AND n.result_expires_at > w.now
        THEN (SELECT body FROM result WHERE job_id = n.id)
    END AS inline_result
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (job_id, tenant, now, n)
LEFT JOIN job_now AS n ON n.id = w.job_id AND n.tenant = w.tenant
-- An index is not asked for NULL: who has been found is looked for no further.
LEFT JOIN tombstone AS t
    ON t.job_id = CASE WHEN n.id IS NULL THEN w.job_id END AND t.tenant = w.tenant AND t.kept_until > w.now
LEFT JOIN inbox AS i
    ON i.job_id = CASE WHEN n.id IS NULL AND t.job_id IS NULL THEN w.job_id END AND i.tenant = w.tenant
WHERE n.id IS NOT NULL OR t.job_id IS NOT NULL OR i.job_id IS NOT NULL
