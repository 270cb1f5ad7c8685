DELETE FROM scheduled
WHERE (available_at, job_id) IN (
VALUES (?, ?)
)
