-- A count that is wrong would hold up everybody behind it.
UPDATE turn
SET waiting = (SELECT count(*) FROM ready WHERE operation = :operation AND tenant = :tenant),
    is_waiting = EXISTS (SELECT 1 FROM ready WHERE operation = :operation AND tenant = :tenant),
    is_held = 0
WHERE operation = :operation AND tenant = :tenant
