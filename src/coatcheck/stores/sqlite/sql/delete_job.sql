-- Whether it cost anything tells whether there is more to delete.
DELETE FROM job WHERE id = :job_id AND status IS NOT NULL
RETURNING chain_id, EXISTS (SELECT 1 FROM job_cost AS c WHERE c.job_id = :job_id)
