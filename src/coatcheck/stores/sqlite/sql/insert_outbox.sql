INSERT INTO outbox (type, job_id, tenant, operation, version, occurred_at, correlation_id, data)
SELECT * FROM (
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
) WHERE column1 IS NOT NULL
