SELECT job_id, kind, charged, spent, attempt, number, window_ms, window_at FROM job_cost ORDER BY job_id, kind
