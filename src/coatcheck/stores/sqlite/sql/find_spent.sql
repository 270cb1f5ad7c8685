-- No row: the lease is lost. Else what the job has spent, and what its tenant's jobs cost in the window: in the job's
-- operation, and in all.
SELECT
    c.spent,
    (
        SELECT coalesce(sum(s.charged + s.spent), 0) FROM spending AS s
        WHERE s.tenant = l.tenant AND s.kind = :kind AND s.window_ms = :window_ms AND s.window_at = :window_at
            AND s.operation = l.operation
    ),
    (
        SELECT coalesce(sum(s.charged + s.spent), 0) FROM spending AS s
        WHERE s.tenant = l.tenant AND s.kind = :kind AND s.window_ms = :window_ms AND s.window_at = :window_at
    )
FROM lease AS l
JOIN job_cost AS c ON c.job_id = l.job_id AND c.kind = :kind
WHERE l.job_id = :job_id AND l.attempt = :attempt AND l.token = :token
