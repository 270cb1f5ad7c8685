SELECT id FROM job
WHERE tenant = $1 AND operation = $2 AND status IN ('succeeded', 'failed', 'cancelled')
ORDER BY id
LIMIT $3
FOR UPDATE SKIP LOCKED
