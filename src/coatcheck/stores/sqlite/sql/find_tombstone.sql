SELECT job_id, operation, expired_at FROM tombstone
WHERE job_id = :job_id AND tenant = :tenant AND kept_until > :now
