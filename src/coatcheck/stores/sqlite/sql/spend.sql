-- Written only under the lease named. A spend whose number is counted already, or is an earlier one, changes nothing.
INSERT INTO job_cost (job_id, kind, charged, spent, attempt, number, window_ms, window_at)
SELECT l.job_id, :kind, 0, :units, l.attempt, :number, :window_ms, :window_at
FROM lease AS l
WHERE l.job_id = :job_id AND l.attempt = :attempt AND l.token = :token
ON CONFLICT (job_id, kind) DO UPDATE
SET spent = min(job_cost.spent + excluded.spent, :most), attempt = excluded.attempt, number = excluded.number
WHERE (job_cost.attempt, job_cost.number) < (excluded.attempt, excluded.number)
