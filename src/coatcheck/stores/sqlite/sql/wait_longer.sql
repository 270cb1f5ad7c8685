UPDATE turn SET waiting = waiting + 1 WHERE operation = :operation AND tenant = :tenant AND is_waiting = 1
