-- Written only under the lease named; the first value recorded stands.
INSERT INTO effect (chain_id, name, value, recorded_at)
SELECT j.chain_id, :name, :value, :now
FROM lease AS l
JOIN job AS j ON j.id = l.job_id
WHERE l.job_id = :job_id AND l.attempt = :attempt AND l.token = :token
ON CONFLICT (chain_id, name) DO NOTHING
