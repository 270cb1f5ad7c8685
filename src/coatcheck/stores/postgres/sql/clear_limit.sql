DELETE FROM limit_override WHERE name = $1 AND tenant = $2 AND operation = $3
