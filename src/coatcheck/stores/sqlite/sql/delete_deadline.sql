DELETE FROM deadline WHERE deadline_at = :deadline_at AND job_id = :job_id
