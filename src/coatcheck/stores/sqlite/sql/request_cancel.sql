UPDATE lease
SET cancel_requested = 1, cancel_reason = :reason, version = version + 1, updated_at = :now
WHERE job_id = :job_id AND cancel_requested = 0
