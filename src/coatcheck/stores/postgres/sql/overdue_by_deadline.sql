-- A running job is stopped by its worker or settled by a rescue; here only those that wait.
SELECT d.job_id FROM deadline AS d
WHERE d.deadline_at <= $1 AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.job_id = d.job_id)
ORDER BY d.deadline_at, d.job_id
LIMIT $2
FOR UPDATE OF d SKIP LOCKED
