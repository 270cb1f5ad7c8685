DELETE FROM result WHERE job_id = :job_id
