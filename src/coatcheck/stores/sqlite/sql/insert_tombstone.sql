-- Erased before its time, or expired at its time however late the sweep comes.
INSERT INTO tombstone (job_id, tenant, operation, expired_at, kept_until)
SELECT id, tenant, operation, min(:now, expires_at), tombstone_until
FROM job WHERE id = :job_id AND status IS NOT NULL
