DELETE FROM turn WHERE operation = :operation AND tenant = :tenant AND waiting = 0
