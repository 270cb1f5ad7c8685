INSERT INTO outbox (type, job_id, tenant, operation, version, occurred_at, correlation_id, data)
SELECT o.type, o.job_id, o.tenant, o.operation, o.version, o.occurred_at, o.correlation_id, o.data
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::text[], $8::bytea[]
) WITH ORDINALITY AS o (type, job_id, tenant, operation, version, occurred_at, correlation_id, data, n)
ORDER BY o.n
