UPDATE turn SET waiting = waiting + :count WHERE operation = :operation AND tenant = :tenant AND is_waiting = 1
