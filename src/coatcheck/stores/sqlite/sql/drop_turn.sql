DELETE FROM turn WHERE operation = :operation AND tenant = :tenant
