INSERT INTO job_cost (job_id, kind, charged, spent, attempt, number, window_ms, window_at)
SELECT column1, column2, column3, 0, 0, 0, column4, column5 FROM (
VALUES (?, ?, ?, ?, ?)
) WHERE column1 IS NOT NULL
