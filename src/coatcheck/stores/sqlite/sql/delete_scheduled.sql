DELETE FROM scheduled
WHERE job_id = :job_id
RETURNING available_at, version, attempt, counted_attempts, crashes, is_alone, started_at, updated_at
