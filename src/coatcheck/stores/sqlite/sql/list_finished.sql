SELECT id FROM job
WHERE tenant = :tenant AND operation = :operation AND status = :status AND id < :before AND expires_at > :now
ORDER BY id DESC
LIMIT :limit
