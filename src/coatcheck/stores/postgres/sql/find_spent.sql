-- No row: the lease is lost. Else what the job has spent, and what its tenant's jobs cost in the window: in the job's
-- operation, and in all.
SELECT
    c.spent,
    (
        SELECT coalesce(sum(s.charged + s.spent), 0)::bigint FROM spending AS s
        WHERE s.tenant = l.tenant AND s.kind = $4 AND s.window_ms = $5 AND s.window_at = $6
            AND s.operation = l.operation
    ),
    (
        SELECT coalesce(sum(s.charged + s.spent), 0)::bigint FROM spending AS s
        WHERE s.tenant = l.tenant AND s.kind = $4 AND s.window_ms = $5 AND s.window_at = $6
    )
FROM lease AS l
JOIN job_cost AS c ON c.job_id = l.job_id AND c.kind = $4
WHERE l.job_id = $1 AND l.attempt = $2 AND l.token = $3
