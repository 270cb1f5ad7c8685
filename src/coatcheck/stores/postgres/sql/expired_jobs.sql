SELECT id FROM job
WHERE expires_at IS NOT NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2
FOR UPDATE SKIP LOCKED
