SELECT tenant, vstart, waiting FROM turn
WHERE operation = :operation AND is_waiting = 1 AND is_held = 0
ORDER BY vstart, tenant
LIMIT :limit
