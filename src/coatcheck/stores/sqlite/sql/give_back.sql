-- What a job was charged goes back into the window that it came from, if that is still kept.
UPDATE spending
SET charged = max(spending.charged - c.charged, 0)
FROM job_cost AS c
WHERE c.job_id = :job_id AND spending.tenant = :tenant AND spending.kind = c.kind AND spending.window_ms = c.window_ms
    AND spending.window_at = c.window_at AND spending.operation = :operation
