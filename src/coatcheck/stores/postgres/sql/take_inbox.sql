-- The oldest rows leave the inbox, as many as have $2 bytes of payload together, one at least; those that another is
-- just moving are stepped over. A caller that was never told of its commit may have handed in the same job twice:
-- is_known says that it has moved on before.
WITH held AS MATERIALIZED (
    SELECT job_id, octet_length(payload) AS bytes FROM inbox ORDER BY job_id LIMIT $1
    FOR UPDATE SKIP LOCKED
),
chosen AS MATERIALIZED (
    SELECT s.job_id FROM (SELECT job_id, sum(bytes) OVER (ORDER BY job_id) - bytes AS bytes_before FROM held) AS s
    WHERE s.bytes_before < $2
)
DELETE FROM inbox AS i USING chosen AS c
WHERE i.job_id = c.job_id
RETURNING
    i.job_id, i.tenant, i.operation, i.operation_version, i.priority, i.max_attempts, i.created_at, i.available_at,
    i.deadline_at, i.correlation_id, i.traceparent, i.payload, i.key, i.algorithm, i.fingerprint, i.key_expires_at,
    i.costs,
    EXISTS (SELECT 1 FROM tenant AS r WHERE r.name = i.tenant AND r.revocation IS NOT NULL) AS is_revoked,
    EXISTS (SELECT 1 FROM job AS j WHERE j.id = i.job_id)
        OR EXISTS (SELECT 1 FROM tombstone AS t WHERE t.job_id = i.job_id) AS is_known
