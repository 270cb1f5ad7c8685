-- Jobs whose time has come leave the scheduled ones; who is just being moved or ended by another is stepped over.
DELETE FROM scheduled
WHERE job_id IN (
    SELECT job_id FROM scheduled
    WHERE available_at <= $1 ORDER BY available_at, job_id LIMIT $2
    FOR UPDATE SKIP LOCKED
)
RETURNING operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone, started_at, updated_at
