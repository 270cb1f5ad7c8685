SELECT operation, tenant FROM turn
WHERE is_held AND (tenant, operation) > ($1, $2)
ORDER BY tenant, operation
LIMIT $3
