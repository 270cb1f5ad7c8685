DELETE FROM result WHERE job_id IN (
    SELECT job_id FROM result WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
    FOR UPDATE SKIP LOCKED
)
