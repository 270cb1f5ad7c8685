SELECT job_id, content_type, file_name, expires_at, body FROM result ORDER BY job_id
