-- Each job served has cost 1: the tenant goes behind those that waited as long.
UPDATE turn SET vstart = vstart + :count, waiting = waiting - :count, is_waiting = waiting > :count
WHERE operation = :operation AND tenant = :tenant
