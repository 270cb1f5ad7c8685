-- Of a job that is kept.
SELECT p.body
FROM payload AS p
JOIN job AS j ON j.id = p.job_id
WHERE j.id = :job_id AND j.tenant = :tenant AND (j.expires_at IS NULL OR j.expires_at > :now)
