INSERT INTO payload (job_id, body)
VALUES (?, ?)
