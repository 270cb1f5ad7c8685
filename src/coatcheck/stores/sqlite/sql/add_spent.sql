INSERT INTO spending (tenant, kind, window_ms, window_at, operation, charged, spent)
SELECT l.tenant, :kind, :window_ms, :window_at, l.operation, 0, :units
FROM lease AS l
WHERE l.job_id = :job_id AND l.attempt = :attempt AND l.token = :token
ON CONFLICT (tenant, kind, window_ms, window_at, operation) DO UPDATE
SET spent = min(spending.spent + excluded.spent, :most)
