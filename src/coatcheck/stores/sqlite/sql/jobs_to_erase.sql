SELECT id FROM job
WHERE tenant = :tenant AND operation = :operation AND status IN ('succeeded', 'failed', 'cancelled')
LIMIT :limit
