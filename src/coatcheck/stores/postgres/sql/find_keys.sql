-- What keys that could not be reserved stand for.
SELECT w.job_id AS submission, k.algorithm, k.fingerprint, k.job_id, k.expires_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS w (job_id, tenant, operation, key)
JOIN idempotency_key AS k ON k.tenant = w.tenant AND k.operation = w.operation AND k.key = w.key
