-- A job as it stands now: its record, with the moving parts from wherever an open job is.
CREATE VIEW job_now AS
SELECT
    j.id,
    j.tenant,
    j.operation,
    j.operation_version,
    CASE
        WHEN j.status IS NOT NULL THEN j.status
        WHEN l.job_id IS NOT NULL THEN 'running'
        ELSE 'queued'
    END AS status,
    coalesce(l.version, r.version, s.version, j.version) AS version,
    coalesce(l.attempt, r.attempt, s.attempt, j.attempt) AS attempt,
    coalesce(l.counted_attempts, r.counted_attempts, s.counted_attempts, j.counted_attempts) AS counted_attempts,
    j.max_attempts,
    j.priority,
    j.created_at,
    coalesce(l.updated_at, r.updated_at, s.updated_at, j.updated_at) AS updated_at,
    coalesce(l.available_at, r.available_at, s.available_at, j.available_at) AS available_at,
    j.correlation_id,
    j.chain_id,
    coalesce(l.started_at, r.started_at, s.started_at, j.started_at) AS started_at,
    j.finished_at,
    j.deadline_at,
    j.expires_at,
    j.result_expires_at,
    l.progress_fraction,
    l.progress_message,
    coalesce(l.cancel_requested, j.cancel_requested) AS cancel_requested,
    coalesce(l.cancel_reason, j.cancel_reason) AS cancel_reason,
    j.error_category,
    j.error_detail,
    j.error_code,
    j.error_operator_detail,
    j.dead_lettered_at,
    j.traceparent,
    j.redrive_of,
    j.redriven_as,
    j.result_type,
    j.result_bytes,
    j.tombstone_until
FROM job AS j
LEFT JOIN lease AS l ON j.status IS NULL AND l.job_id = j.id
LEFT JOIN ready AS r
    ON j.status IS NULL AND r.operation = j.operation AND r.tenant = j.tenant
    AND r.priority = j.priority AND r.job_id = j.id
LEFT JOIN scheduled AS s ON j.status IS NULL AND s.job_id = j.id
