UPDATE lease
SET beat = beat + 1, version = version + 1, updated_at = :now,
    progress_fraction = :fraction, progress_message = :message
WHERE job_id = :job_id AND attempt = :attempt AND token = :token
RETURNING cancel_requested
