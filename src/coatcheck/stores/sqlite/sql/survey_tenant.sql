-- The same, of one run of a tenant's jobs. No status: those that are not finished.
SELECT
    j.id, j.tenant, j.operation,
    CASE
        WHEN j.status IS NOT NULL THEN j.status
        WHEN EXISTS (SELECT 1 FROM lease AS l WHERE l.job_id = j.id) THEN 'running'
        ELSE 'queued'
    END AS status,
    j.error_category, j.finished_at, j.expires_at
FROM job AS j
WHERE j.tenant = :tenant AND j.operation = :operation AND j.status IS :status AND j.id < :before AND j.id >= :first
ORDER BY j.id DESC
LIMIT :look
