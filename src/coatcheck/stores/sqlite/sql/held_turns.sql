SELECT operation, tenant FROM turn
WHERE is_held = 1 AND (tenant, operation) > (:tenant, :operation)
ORDER BY tenant, operation
LIMIT :limit
