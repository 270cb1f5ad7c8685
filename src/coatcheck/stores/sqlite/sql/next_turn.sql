SELECT tenant FROM turn WHERE operation = :operation ORDER BY vstart, tenant LIMIT 1
