DELETE FROM tombstone WHERE job_id IN (
    SELECT job_id FROM tombstone WHERE kept_until <= $1 ORDER BY kept_until LIMIT $2
    FOR UPDATE SKIP LOCKED
)
