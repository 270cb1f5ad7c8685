-- Whose job it is, or whose tombstone, or whose in the inbox.
SELECT tenant FROM job WHERE id = $1
UNION ALL
SELECT tenant FROM tombstone WHERE job_id = $1
UNION ALL
SELECT tenant FROM inbox WHERE job_id = $1
LIMIT 1
