SELECT id FROM job
WHERE tenant = :tenant AND operation = :operation AND status IS NULL AND id < :before
ORDER BY id DESC
LIMIT :limit
