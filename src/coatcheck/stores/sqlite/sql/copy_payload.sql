INSERT INTO payload (job_id, body) SELECT :new_job_id, body FROM payload WHERE job_id = :job_id
