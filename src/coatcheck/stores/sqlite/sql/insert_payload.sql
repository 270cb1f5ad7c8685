INSERT INTO payload (job_id, body)
SELECT * FROM (
VALUES (?, ?)
) WHERE column1 IS NOT NULL
