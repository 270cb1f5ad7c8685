-- What settling an attempt needs to know of its job.
SELECT max_attempts, deadline_at, key_expires_at FROM job WHERE id = :job_id AND status IS NULL
