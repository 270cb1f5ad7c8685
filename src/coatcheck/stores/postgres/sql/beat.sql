-- The token is the fence: a beat for a lease that was taken back finds no row. In the order of the ids, so that two
-- batches never wait for each other.
WITH beats AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::text[], $2::integer[], $3::text[], $4::boolean[], $5::double precision[], $6::text[], $7::bigint[]
    ) AS b (job_id, attempt, token, has_progress, fraction, message, now)
),
held AS (
    SELECT l.job_id
    FROM lease AS l
    JOIN beats AS b ON l.job_id = b.job_id AND l.attempt = b.attempt AND l.token = b.token
    ORDER BY l.job_id
    FOR NO KEY UPDATE OF l
)
UPDATE lease AS l
SET ends_at = coalesce($8::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $9::bigint,
    version = l.version + b.has_progress::integer,
    updated_at = CASE WHEN b.has_progress THEN b.now ELSE l.updated_at END,
    progress_fraction = CASE WHEN b.has_progress THEN b.fraction ELSE l.progress_fraction END,
    progress_message = CASE WHEN b.has_progress THEN b.message ELSE l.progress_message END
FROM held AS h JOIN beats AS b ON b.job_id = h.job_id
WHERE l.job_id = h.job_id AND l.attempt = b.attempt AND l.token = b.token
RETURNING l.job_id, l.attempt, l.token, l.cancel_requested
