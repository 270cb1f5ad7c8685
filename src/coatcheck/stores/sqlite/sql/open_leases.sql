-- The leases under which attempts end, with what settling them needs to know of their jobs.
SELECT json_group_array(json_array(
    l.job_id, l.attempt, l.token,
    l.operation, l.tenant, l.priority, l.available_at, l.version, l.counted_attempts, l.crashes, l.is_alone,
    l.started_at, l.attempt_started_at, l.cancel_requested, l.cancel_reason,
    j.operation_version, j.max_attempts, j.created_at, j.deadline_at, j.correlation_id, j.traceparent, j.chain_id,
    j.redrive_of
))
FROM (
VALUES (?, ?, ?)
) AS ended
CROSS JOIN lease AS l ON l.job_id = ended.column1 AND l.attempt = ended.column2 AND l.token = ended.column3
CROSS JOIN job AS j ON j.id = l.job_id AND j.status IS NULL
