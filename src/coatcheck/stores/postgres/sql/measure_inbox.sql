-- How many wait in the inbox, as far as they are counted, and when the first of them was handed in.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM inbox LIMIT $1) AS few),
    (SELECT created_at FROM inbox ORDER BY job_id LIMIT 1)
