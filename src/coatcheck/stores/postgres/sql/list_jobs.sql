-- A page is the merge of the runs in which its jobs stand, one for each operation and status, in one snapshot.
-- $5, $6 and $7 choose the runs of open jobs: all, the queued, the running; $8 names the final statuses.
WITH RECURSIVE seen (operation) AS (
    SELECT coalesce($2, (SELECT min(j.operation) FROM job AS j WHERE j.tenant = $1))
    UNION ALL
    -- The operations in which a tenant has jobs, one index seek each.
    SELECT (SELECT min(j.operation) FROM job AS j WHERE j.tenant = $1 AND j.operation > seen.operation)
    FROM seen
    WHERE $2 IS NULL AND seen.operation IS NOT NULL
),
page AS (
    SELECT run.id
    FROM seen AS o
    CROSS JOIN LATERAL (
        (
            SELECT j.id FROM job AS j
            WHERE $5::boolean AND j.tenant = $1 AND j.operation = o.operation AND j.status IS NULL AND j.id < $3
            ORDER BY j.id DESC LIMIT $4
        )
        UNION ALL
        -- Steps over at most as many rows as there are leases.
        (
            SELECT j.id FROM job AS j
            WHERE $6::boolean AND j.tenant = $1 AND j.operation = o.operation AND j.status IS NULL AND j.id < $3
                AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.job_id = j.id)
            ORDER BY j.id DESC LIMIT $4
        )
        UNION ALL
        (
            SELECT l.job_id FROM lease AS l
            WHERE $7::boolean AND l.tenant = $1 AND l.operation = o.operation AND l.job_id < $3
            ORDER BY l.job_id DESC LIMIT $4
        )
        UNION ALL
        SELECT ended.id
        FROM unnest($8::text[]) AS s (status)
        CROSS JOIN LATERAL (
            SELECT j.id FROM job AS j
            WHERE j.tenant = $1 AND j.operation = o.operation AND j.status = s.status AND j.id < $3
                AND j.expires_at > $9
            ORDER BY j.id DESC LIMIT $4
        ) AS ended
    ) AS run
    ORDER BY run.id DESC
    LIMIT $4
)
SELECT
    n.id, n.tenant, n.operation, n.operation_version, n.status, n.version, n.attempt, n.counted_attempts, n.max_attempts,
    n.priority, n.created_at, n.updated_at, n.available_at, n.correlation_id, n.chain_id, n.started_at, n.finished_at,
    n.deadline_at, n.expires_at, n.result_expires_at, n.progress_fraction, n.progress_message, n.cancel_requested,
    n.cancel_reason, n.error_category, n.error_detail, n.error_code, n.error_operator_detail, n.dead_lettered_at,
    n.traceparent, n.redrive_of, n.redriven_as, n.result_type, n.result_bytes,
    CASE
        WHEN n.result_type = 'application/json' AND n.result_bytes <= $10 AND n.result_expires_at > $9
        THEN (SELECT body FROM result WHERE job_id = n.id)
    END AS inline_result
FROM page AS p
JOIN job_now AS n ON n.id = p.id
ORDER BY p.id DESC
