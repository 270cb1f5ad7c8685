-- One job, which its tenant wants something of now. No row: it is not there, or another has moved it on meanwhile.
DELETE FROM inbox AS i
WHERE i.job_id = $1 AND i.tenant = $2
RETURNING
    i.job_id, i.tenant, i.operation, i.operation_version, i.priority, i.max_attempts, i.created_at, i.available_at,
    i.deadline_at, i.correlation_id, i.traceparent, i.payload, i.key, i.algorithm, i.fingerprint, i.key_expires_at,
    i.costs,
    EXISTS (SELECT 1 FROM tenant AS r WHERE r.name = i.tenant AND r.revocation IS NOT NULL) AS is_revoked,
    EXISTS (SELECT 1 FROM job AS j WHERE j.id = i.job_id)
        OR EXISTS (SELECT 1 FROM tombstone AS t WHERE t.job_id = i.job_id) AS is_known
