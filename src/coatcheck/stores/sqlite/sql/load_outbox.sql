INSERT INTO outbox (seq, type, job_id, tenant, operation, version, occurred_at, correlation_id, data)
VALUES (:seq, :type, :job_id, :tenant, :operation, :version, :occurred_at, :correlation_id, :data)
