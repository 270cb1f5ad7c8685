INSERT INTO result (job_id, content_type, file_name, expires_at, body)
SELECT * FROM (
VALUES (?, ?, ?, ?, ?)
) WHERE column1 IS NOT NULL
