SELECT tenant, vstart, waiting FROM turn
WHERE operation = :operation AND is_waiting = 1
ORDER BY vstart, tenant
LIMIT :limit
