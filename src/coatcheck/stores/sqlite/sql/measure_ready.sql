SELECT operation, sum(waiting) FROM turn WHERE is_waiting = 1 GROUP BY operation
