SELECT job_id, token, beat FROM lease
