INSERT INTO payload (job_id, body)
VALUES (:job_id, :body)
