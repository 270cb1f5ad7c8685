-- Nothing changes where it is set like this, or too many others are set.
INSERT INTO limit_override (name, tenant, operation, value)
SELECT :name, :tenant, :operation, :value
WHERE
    (SELECT count(*) FROM limit_override) < :set_max
    OR EXISTS (SELECT 1 FROM limit_override WHERE name = :name AND tenant = :tenant AND operation = :operation)
ON CONFLICT (name, tenant, operation) DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value
