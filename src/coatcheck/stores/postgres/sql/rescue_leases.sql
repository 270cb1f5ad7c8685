-- As end_leases, for leases whose end has passed. Who is just being kept or ended by its worker is stepped over.
WITH silent AS (
    SELECT job_id FROM lease
    WHERE ends_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ORDER BY job_id LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM lease AS l
USING silent AS h, job AS j
WHERE l.job_id = h.job_id AND j.id = l.job_id
RETURNING
    l.job_id, l.attempt, l.token, l.operation, l.tenant, l.priority, l.available_at, l.version, l.counted_attempts,
    l.crashes, l.is_alone, l.started_at, l.attempt_started_at, l.cancel_requested, l.cancel_reason,
    j.operation_version, j.max_attempts, j.created_at, j.deadline_at, j.correlation_id, j.traceparent, j.chain_id,
    j.redrive_of
