SELECT tenant FROM turn WHERE operation = :operation AND is_waiting = 1 ORDER BY vstart, tenant LIMIT 1
