INSERT INTO limit_override (name, tenant, operation, value)
VALUES (:name, :tenant, :operation, :value)
