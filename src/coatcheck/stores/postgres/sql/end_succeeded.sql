-- Attempts that succeeded, from the lease to the end of the job in one statement: success is final whatever else is known
-- of the job, so nothing has to be decided in between. The token is the fence, as in end_leases. Comes with the same.
WITH held AS (
    SELECT e.*
    FROM lease AS l
    JOIN unnest(
        $1::text[], $2::integer[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[],
        $9::text[], $10::bytea[]
    ) AS e (
        job_id, attempt, token, finished_at, expires_at, result_expires_at, tombstone_until, content_type, file_name, body
    )
        ON l.job_id = e.job_id AND l.attempt = e.attempt AND l.token = e.token
    ORDER BY l.job_id
    FOR UPDATE OF l
),
ended AS (
    DELETE FROM lease AS l USING held AS h
    WHERE l.job_id = h.job_id
    RETURNING
        l.*, h.finished_at, h.expires_at, h.result_expires_at, h.tombstone_until, h.content_type, h.file_name, h.body
),
attempts AS (
    INSERT INTO attempt (job_id, number, started_at, finished_at, outcome)
    SELECT job_id, attempt, attempt_started_at, finished_at, 'succeeded' FROM ended
),
results AS (
    INSERT INTO result (job_id, content_type, file_name, expires_at, body)
    SELECT job_id, content_type, file_name, nullif(result_expires_at, expires_at), body FROM ended
),
-- Final is final: a job that has a status keeps it.
jobs AS (
    UPDATE job AS j
    SET status = 'succeeded', version = e.version + 1, attempt = e.attempt, counted_attempts = e.counted_attempts,
        started_at = e.started_at, available_at = e.available_at, updated_at = e.finished_at,
        finished_at = e.finished_at, expires_at = e.expires_at, result_expires_at = e.result_expires_at,
        -- A tombstone lives at least as long as the key that may still point to it.
        tombstone_until = greatest(e.tombstone_until, coalesce(j.key_expires_at, 0)),
        cancel_requested = e.cancel_requested, cancel_reason = e.cancel_reason, result_type = e.content_type,
        result_bytes = octet_length(e.body)
    FROM ended AS e
    WHERE j.id = e.job_id AND j.status IS NULL
    RETURNING
        e.job_id, e.attempt, e.token, e.operation, e.tenant, e.priority, e.available_at, e.version, e.counted_attempts,
        e.crashes, e.is_alone, e.started_at, e.attempt_started_at, e.cancel_requested, e.cancel_reason,
        j.operation_version, j.max_attempts, j.created_at, j.deadline_at, j.correlation_id, j.traceparent, j.chain_id,
        j.redrive_of
),
deadlines AS (
    DELETE FROM deadline AS d USING jobs AS j
    WHERE j.deadline_at IS NOT NULL AND d.deadline_at = j.deadline_at AND d.job_id = j.job_id
)
SELECT * FROM jobs
