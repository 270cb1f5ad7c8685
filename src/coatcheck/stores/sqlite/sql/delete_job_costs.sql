DELETE FROM job_cost WHERE job_id = :job_id
