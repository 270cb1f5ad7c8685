-- Whose job it is, or whose tombstone.
SELECT tenant FROM job WHERE id = :job_id
UNION ALL
SELECT tenant FROM tombstone WHERE job_id = :job_id
LIMIT 1
