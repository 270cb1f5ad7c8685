UPDATE job_cost SET charged = 0 WHERE job_id = :job_id
