SELECT name, tenant, operation, value FROM limit_override ORDER BY name, tenant, operation
