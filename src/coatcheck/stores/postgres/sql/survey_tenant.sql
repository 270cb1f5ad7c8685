-- The same, of runs of a tenant's jobs, each looked at alike. A status of '' is that of what is not finished.
SELECT run.n, g.*
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS run (operation, status, n)
CROSS JOIN LATERAL (
    (
        SELECT
            j.id, j.tenant, j.operation,
            CASE WHEN EXISTS (SELECT 1 FROM lease AS l WHERE l.job_id = j.id) THEN 'running' ELSE 'queued' END AS status,
            j.error_category, j.finished_at, j.expires_at
        FROM job AS j
        WHERE run.status = '' AND j.tenant = $1 AND j.operation = run.operation AND j.status IS NULL
            AND j.id < $4 AND j.id >= $5
        ORDER BY j.id DESC
        LIMIT $6
    )
    UNION ALL
    (
        SELECT j.id, j.tenant, j.operation, j.status, j.error_category, j.finished_at, j.expires_at
        FROM job AS j
        WHERE run.status <> '' AND j.tenant = $1 AND j.operation = run.operation AND j.status = run.status
            AND j.id < $4 AND j.id >= $5
        ORDER BY j.id DESC
        LIMIT $6
    )
) AS g
ORDER BY run.n, g.id DESC
