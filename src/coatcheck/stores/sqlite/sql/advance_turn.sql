-- One job of cost 1 was served: the tenant goes behind those that waited as long.
UPDATE turn SET vstart = vstart + 1.0, waiting = waiting - 1, is_waiting = waiting > 1
WHERE operation = :operation AND tenant = :tenant
