UPDATE lease
SET cancel_requested = true, cancel_reason = $2, version = version + 1, updated_at = $3
WHERE job_id = $1 AND NOT cancel_requested
RETURNING job_id
