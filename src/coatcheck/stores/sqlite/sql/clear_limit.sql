DELETE FROM limit_override WHERE name = :name AND tenant = :tenant AND operation = :operation
