DELETE FROM attempt WHERE job_id = :job_id
