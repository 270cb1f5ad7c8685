-- The time that a tenant was in quarantine does not count.
SELECT r.job_id FROM ready AS r
WHERE r.operation = $1 AND r.attempt = 0 AND r.available_at <= $2
    AND NOT EXISTS (
        SELECT 1 FROM tenant AS t
        WHERE t.name = r.tenant AND (
            t.restored_at > $2 OR coalesce(t.by_operation::json ->> $1, t.revocation) = 'quarantine'
        )
    )
ORDER BY r.available_at
LIMIT $3
FOR UPDATE OF r SKIP LOCKED
