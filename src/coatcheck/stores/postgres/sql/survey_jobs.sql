-- Glimpses of jobs, newest first. What is still in the inbox waits as well; a job handed in twice may be in both places.
(
    SELECT
        j.id, j.tenant, j.operation,
        CASE
            WHEN j.status IS NOT NULL THEN j.status WHEN l.job_id IS NOT NULL THEN 'running' ELSE 'queued'
        END AS status,
        j.error_category, j.finished_at, j.expires_at
    FROM job AS j
    LEFT JOIN lease AS l ON l.job_id = j.id
    WHERE j.id < $1 AND j.id >= $2
    ORDER BY j.id DESC
    LIMIT $3
)
UNION ALL
(
    SELECT i.job_id, i.tenant, i.operation, 'queued', NULL, NULL, NULL
    FROM inbox AS i
    WHERE i.job_id < $1 AND i.job_id >= $2 AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = i.job_id)
    ORDER BY i.job_id DESC
    LIMIT $3
)
ORDER BY id DESC
LIMIT $3
