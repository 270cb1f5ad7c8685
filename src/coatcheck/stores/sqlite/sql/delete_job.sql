DELETE FROM job WHERE id = :job_id AND status IS NOT NULL RETURNING chain_id
