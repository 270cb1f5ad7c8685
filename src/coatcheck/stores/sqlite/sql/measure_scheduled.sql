SELECT operation, count(*) FROM scheduled GROUP BY operation
