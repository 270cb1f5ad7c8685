UPDATE turn SET waiting = waiting - 1, is_waiting = waiting > 1, is_held = is_held AND waiting > 1
WHERE operation = :operation AND tenant = :tenant
