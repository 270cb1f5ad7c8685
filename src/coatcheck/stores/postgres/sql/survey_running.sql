-- The same, of what runs.
SELECT l.job_id, l.tenant, l.operation, 'running', NULL, NULL::bigint, NULL::bigint
FROM lease AS l
WHERE l.job_id < $1 AND l.job_id >= $2
ORDER BY l.job_id DESC
LIMIT $3
