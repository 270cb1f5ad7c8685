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
    UNION ALL
    -- What is still in the inbox waits as well. A job handed in twice may be there and in its run.
    (
        SELECT i.job_id FROM inbox AS i
        WHERE ($5::boolean OR $6::boolean) AND i.tenant = $1 AND ($2 IS NULL OR i.operation = $2) AND i.job_id < $3
            AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = i.job_id)
        ORDER BY i.job_id DESC LIMIT $4
    )
    ORDER BY id DESC
    LIMIT $4
)
SELECT
    coalesce(n.id, i.job_id) AS id, coalesce(n.tenant, i.tenant) AS tenant,
    coalesce(n.operation, i.operation) AS operation,
    coalesce(n.operation_version, i.operation_version) AS operation_version, coalesce(n.status, 'queued') AS status,
    coalesce(n.version, 1) AS version, coalesce(n.attempt, 0) AS attempt,
    coalesce(n.counted_attempts, 0) AS counted_attempts, coalesce(n.max_attempts, i.max_attempts) AS max_attempts,
    coalesce(n.priority, i.priority) AS priority, coalesce(n.created_at, i.created_at) AS created_at,
    coalesce(n.updated_at, i.created_at) AS updated_at, coalesce(n.available_at, i.available_at) AS available_at,
    coalesce(n.correlation_id, i.correlation_id) AS correlation_id, coalesce(n.chain_id, i.job_id) AS chain_id,
    n.started_at, n.finished_at, coalesce(n.deadline_at, i.deadline_at) AS deadline_at, n.expires_at,
    n.result_expires_at, n.progress_fraction, n.progress_message,
    coalesce(n.cancel_requested, false) AS cancel_requested, n.cancel_reason, n.error_category, n.error_detail,
    n.error_code, n.error_operator_detail, n.dead_lettered_at, coalesce(n.traceparent, i.traceparent) AS traceparent,
    n.redrive_of, n.redriven_as, n.result_type, n.result_bytes,
    CASE
        WHEN n.result_type = 'application/json' AND n.result_bytes <= $10 AND n.result_expires_at > $9
        THEN (SELECT body FROM result WHERE job_id = n.id)
    END AS inline_result
FROM page AS p
LEFT JOIN job_now AS n ON n.id = p.id
LEFT JOIN inbox AS i ON i.job_id = CASE WHEN n.id IS NULL THEN p.id END
ORDER BY p.id DESC
