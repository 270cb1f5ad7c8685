-- Glimpses of jobs, newest first.
SELECT
    j.id, j.tenant, j.operation,
    CASE
        WHEN j.status IS NOT NULL THEN j.status
        WHEN EXISTS (SELECT 1 FROM lease AS l WHERE l.job_id = j.id) THEN 'running'
        ELSE 'queued'
    END AS status,
    j.error_category, j.finished_at, j.expires_at
FROM job AS j
WHERE j.id < :before AND j.id >= :first
ORDER BY j.id DESC
LIMIT :look
