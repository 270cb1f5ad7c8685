-- The token is the fence: a beat for a lease that was taken back finds no row.
UPDATE lease SET beat = beat + 1
WHERE job_id = :job_id AND attempt = :attempt AND token = :token
RETURNING cancel_requested
