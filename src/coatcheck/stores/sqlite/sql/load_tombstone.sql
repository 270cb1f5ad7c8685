INSERT INTO tombstone (job_id, tenant, operation, expired_at, kept_until)
VALUES (:job_id, :tenant, :operation, :expired_at, :kept_until)
