INSERT INTO deadline (deadline_at, job_id)
SELECT * FROM (
VALUES (?, ?)
) WHERE column1 IS NOT NULL
