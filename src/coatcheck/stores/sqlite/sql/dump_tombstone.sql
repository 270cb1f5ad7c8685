SELECT job_id, tenant, operation, expired_at, kept_until FROM tombstone ORDER BY job_id
