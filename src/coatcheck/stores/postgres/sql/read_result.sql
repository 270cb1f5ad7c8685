SELECT r.content_type, r.file_name, r.body
FROM result AS r
JOIN job AS j ON j.id = r.job_id
WHERE j.id = $1 AND j.tenant = $2 AND j.result_expires_at > $3
