-- The same, of runs of a tenant's jobs, each looked at alike. A status of '' is that of what is not finished. Run 0 is
-- the inbox, where $7 asks for it, in the operation $8 or in all.
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
UNION ALL
(
    SELECT 0, i.job_id, i.tenant, i.operation, 'queued', NULL, NULL, NULL
    FROM inbox AS i
    WHERE $7::boolean AND i.tenant = $1 AND ($8::text IS NULL OR i.operation = $8)
        AND i.job_id < $4 AND i.job_id >= $5 AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = i.job_id)
    ORDER BY i.job_id DESC
    LIMIT $6
)
ORDER BY n, id DESC
