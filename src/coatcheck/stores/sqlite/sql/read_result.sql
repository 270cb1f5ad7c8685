SELECT r.content_type, r.file_name, r.body
FROM result AS r
JOIN job AS j ON j.id = r.job_id
WHERE j.id = :job_id AND j.tenant = :tenant AND j.result_expires_at > :now
