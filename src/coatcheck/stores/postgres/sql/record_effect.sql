-- Written only under the lease named, which is held until the commit; the first value recorded stands.
WITH held AS (
    SELECT l.job_id FROM lease AS l
    WHERE l.job_id = $1 AND l.attempt = $2 AND l.token = $3
    FOR KEY SHARE
)
INSERT INTO effect (chain_id, name, value, recorded_at)
SELECT j.chain_id, $4, $5, $6
FROM held AS h JOIN job AS j ON j.id = h.job_id
ON CONFLICT (chain_id, name) DO NOTHING
