SELECT DISTINCT operation FROM turn WHERE is_waiting = 1
