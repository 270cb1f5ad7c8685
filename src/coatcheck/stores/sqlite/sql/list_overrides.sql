SELECT name, tenant, operation, value FROM limit_override
