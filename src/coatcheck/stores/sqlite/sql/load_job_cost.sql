INSERT INTO job_cost (job_id, kind, charged, spent, attempt, number, window_ms, window_at)
VALUES (:job_id, :kind, :charged, :spent, :attempt, :number, :window_ms, :window_at)
