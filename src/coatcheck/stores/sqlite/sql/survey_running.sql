-- The same, of what runs.
SELECT l.job_id, l.tenant, l.operation, 'running', NULL, NULL, NULL
FROM lease AS l
WHERE l.job_id < :before AND l.job_id >= :first
ORDER BY l.job_id DESC
LIMIT :look
