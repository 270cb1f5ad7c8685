INSERT INTO deadline (deadline_at, job_id)
VALUES (:deadline_at, :job_id)
