-- Glimpses of jobs, newest first.
SELECT
    j.id, j.tenant, j.operation,
    CASE WHEN j.status IS NOT NULL THEN j.status WHEN l.job_id IS NOT NULL THEN 'running' ELSE 'queued' END AS status,
    j.error_category, j.finished_at, j.expires_at
FROM job AS j
LEFT JOIN lease AS l ON l.job_id = j.id
WHERE j.id < $1 AND j.id >= $2
ORDER BY j.id DESC
LIMIT $3
