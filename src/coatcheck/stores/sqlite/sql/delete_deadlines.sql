DELETE FROM deadline
WHERE (deadline_at, job_id) IN (
VALUES (?, ?)
)
