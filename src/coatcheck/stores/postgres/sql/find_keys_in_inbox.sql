-- What a key stands for that is handed in and not reserved yet: the oldest is the one that will have it.
SELECT $1::text AS submission, i.algorithm, i.fingerprint, i.job_id, i.key_expires_at
FROM inbox AS i
WHERE i.tenant = $2 AND i.operation = $3 AND i.key = $4
ORDER BY i.job_id LIMIT 1
