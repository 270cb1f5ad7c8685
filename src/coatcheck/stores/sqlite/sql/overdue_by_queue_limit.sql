-- The time that a tenant was in quarantine does not count.
SELECT r.job_id FROM ready AS r
WHERE r.operation = :operation AND r.attempt = 0 AND r.available_at <= :latest
    AND NOT EXISTS (
        SELECT 1 FROM tenant AS t
        WHERE t.name = r.tenant AND (
            t.restored_at > :latest OR coalesce(t.by_operation ->> :operation, t.revocation) = 'quarantine'
        )
    )
ORDER BY r.available_at
LIMIT :limit
