-- As request_cancel, of many jobs, in the order of their ids.
UPDATE lease AS l
SET cancel_requested = true, cancel_reason = $2, version = l.version + 1, updated_at = $3
FROM (
    SELECT job_id FROM lease WHERE job_id = ANY ($1::text[]) AND NOT cancel_requested
    ORDER BY job_id
    FOR NO KEY UPDATE
) AS held
WHERE l.job_id = held.job_id
RETURNING l.job_id
