SELECT operation, sum(waiting) FROM turn GROUP BY operation
