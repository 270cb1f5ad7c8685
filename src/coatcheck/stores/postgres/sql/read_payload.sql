-- Of a job that is kept, in the inbox too.
SELECT p.body
FROM payload AS p
JOIN job AS j ON j.id = p.job_id
WHERE j.id = $1 AND j.tenant = $2 AND (j.expires_at IS NULL OR j.expires_at > $3)
UNION ALL
SELECT i.payload FROM inbox AS i WHERE i.job_id = $1 AND i.tenant = $2
LIMIT 1
