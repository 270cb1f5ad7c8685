SELECT seq, type, job_id, tenant, operation, version, occurred_at, correlation_id, data FROM outbox ORDER BY seq
