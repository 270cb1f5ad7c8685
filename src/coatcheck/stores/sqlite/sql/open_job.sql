-- What settling an attempt needs to know of its job.
SELECT
    operation_version, max_attempts, created_at, deadline_at, correlation_id, traceparent, chain_id, redrive_of
FROM job WHERE id = :job_id AND status IS NULL
