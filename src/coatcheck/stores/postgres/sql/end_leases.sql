-- The token is the fence: whoever deletes this row has the right to write the outcome, and nobody else has. Comes with
-- what settling needs to know of the job.
WITH held AS (
    SELECT l.job_id
    FROM lease AS l
    JOIN unnest($1::text[], $2::integer[], $3::text[]) AS e (job_id, attempt, token)
        ON l.job_id = e.job_id AND l.attempt = e.attempt AND l.token = e.token
    ORDER BY l.job_id
    FOR UPDATE OF l
)
DELETE FROM lease AS l
USING held AS h, job AS j
WHERE l.job_id = h.job_id AND j.id = l.job_id
RETURNING
    l.job_id, l.attempt, l.token, l.operation, l.tenant, l.priority, l.available_at, l.version, l.counted_attempts,
    l.crashes, l.is_alone, l.started_at, l.attempt_started_at, l.cancel_requested, l.cancel_reason,
    j.operation_version, j.max_attempts, j.created_at, j.deadline_at, j.correlation_id, j.traceparent, j.chain_id,
    j.redrive_of
