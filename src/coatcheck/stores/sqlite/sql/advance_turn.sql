-- Each job served has its cost, which is 1 where nobody weighs more than others: the tenant goes behind those that waited
-- as long.
UPDATE turn SET vstart = vstart + :cost, waiting = waiting - :count, is_waiting = waiting > :count
WHERE operation = :operation AND tenant = :tenant
