DELETE FROM result WHERE job_id IN (SELECT job_id FROM result WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)
