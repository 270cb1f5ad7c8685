SELECT operation, count(*) FROM lease GROUP BY operation
