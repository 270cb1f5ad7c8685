-- A batch of submissions in one statement, which is one transaction: a job is there with its key, its payload and its
-- place in the queue, or nothing of it is.
WITH handed_in AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::integer[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::text[], $11::text[], $12::bytea[], $13::text[], $14::text[], $15::text[], $16::bigint[],
        $17::bytea[]
    ) WITH ORDINALITY AS h (
        job_id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at,
        deadline_at, correlation_id, traceparent, payload, key, algorithm, fingerprint, key_expires_at,
        event_data, n
    )
),
-- In one order of keys, so that two processes never wait for each other. A key whose window is over is free.
reserved AS (
    INSERT INTO idempotency_key AS k (tenant, operation, key, algorithm, fingerprint, job_id, expires_at)
    SELECT tenant, operation, key, algorithm, fingerprint, job_id, key_expires_at
    FROM handed_in WHERE key IS NOT NULL
    ORDER BY tenant, operation, key
    ON CONFLICT (tenant, operation, key) DO UPDATE
    SET algorithm = excluded.algorithm, fingerprint = excluded.fingerprint, job_id = excluded.job_id,
        expires_at = excluded.expires_at
    WHERE k.expires_at <= (SELECT h.created_at FROM handed_in AS h WHERE h.job_id = excluded.job_id)
    RETURNING job_id
),
accepted AS MATERIALIZED (
    SELECT * FROM handed_in WHERE key IS NULL OR job_id IN (SELECT job_id FROM reserved)
),
jobs AS (
    INSERT INTO job (
        id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
        correlation_id, traceparent, chain_id, key_expires_at, updated_at
    )
    SELECT
        job_id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
        correlation_id, traceparent, job_id, key_expires_at, created_at
    FROM accepted
),
payloads AS (
    INSERT INTO payload (job_id, body) SELECT job_id, payload FROM accepted
),
deadlines AS (
    INSERT INTO deadline (deadline_at, job_id)
    SELECT deadline_at, job_id FROM accepted WHERE deadline_at IS NOT NULL
),
delayed AS (
    INSERT INTO scheduled (
        job_id, available_at, operation, tenant, priority, version, attempt, counted_attempts, crashes, is_alone,
        updated_at
    )
    SELECT job_id, available_at, operation, tenant, priority, 1, 0, 0, 0, false, created_at
    FROM accepted WHERE available_at > created_at
),
startable AS (
    INSERT INTO ready (
        operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone,
        updated_at
    )
    SELECT operation, tenant, priority, job_id, available_at, 1, 0, 0, 0, false, created_at
    FROM accepted WHERE available_at <= created_at
),
events AS (
    INSERT INTO outbox (type, job_id, tenant, operation, version, occurred_at, correlation_id, data)
    SELECT $18, job_id, tenant, operation, 1, created_at, correlation_id, event_data
    FROM accepted WHERE event_data IS NOT NULL
    ORDER BY n
),
-- From here on as put_waiting.
joining AS (
    SELECT DISTINCT operation, tenant FROM accepted WHERE available_at <= created_at
),
held AS (
    SELECT t.operation, t.tenant, t.is_waiting
    FROM turn AS t JOIN joining AS j ON t.operation = j.operation AND t.tenant = j.tenant
    ORDER BY t.operation, t.tenant
    FOR KEY SHARE OF t
),
levels AS (
    SELECT o.operation, coalesce(
        (
            SELECT t.vstart FROM turn AS t
            WHERE t.operation = o.operation AND t.is_waiting AND NOT t.is_held ORDER BY t.vstart, t.tenant LIMIT 1
        ),
        (SELECT t.vstart FROM turn AS t WHERE t.operation = o.operation AND t.is_held ORDER BY t.vstart DESC LIMIT 1),
        0.0
    ) AS level
    FROM (SELECT DISTINCT operation FROM joining) AS o
),
back AS (
    UPDATE turn AS t SET is_waiting = true, vstart = greatest(t.vstart, l.level)
    FROM held AS h JOIN levels AS l ON l.operation = h.operation
    WHERE NOT h.is_waiting AND t.operation = h.operation AND t.tenant = h.tenant
),
come AS (
    INSERT INTO turn AS t (operation, tenant, is_waiting, vstart)
    SELECT j.operation, j.tenant, true, l.level
    FROM joining AS j JOIN levels AS l ON l.operation = j.operation
    WHERE NOT EXISTS (SELECT 1 FROM held AS h WHERE h.operation = j.operation AND h.tenant = j.tenant)
    ORDER BY j.operation, j.tenant
    ON CONFLICT (operation, tenant) DO UPDATE SET is_waiting = true, vstart = greatest(t.vstart, excluded.vstart)
)
SELECT job_id FROM accepted
