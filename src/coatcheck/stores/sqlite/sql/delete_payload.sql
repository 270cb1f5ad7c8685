DELETE FROM payload WHERE job_id = :job_id
