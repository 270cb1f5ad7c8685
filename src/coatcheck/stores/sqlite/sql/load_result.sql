INSERT INTO result (job_id, content_type, file_name, expires_at, body)
VALUES (:job_id, :content_type, :file_name, :expires_at, :body)
