-- What taking jobs out of their queue needs to know of them.
SELECT
    id, operation, tenant, priority, operation_version, max_attempts, created_at, deadline_at, correlation_id,
    traceparent, chain_id, redrive_of
FROM job WHERE id = ANY ($1::text[]) AND status IS NULL
