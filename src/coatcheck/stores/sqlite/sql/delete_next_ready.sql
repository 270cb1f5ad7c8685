-- The rows just read, up to the last of them.
DELETE FROM ready
WHERE operation = :operation AND tenant = :tenant AND (priority, job_id) <= (:priority, :job_id)
