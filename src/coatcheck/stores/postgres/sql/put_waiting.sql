-- Jobs wait: those flagged among the ready ones, the others until their time. A tenant that waits already only has
-- its turn held, in the weakest mode there is: claims go on, and nobody can take the turn for idle before the commit.
WITH waiting AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::smallint[], $4::text[], $5::bigint[], $6::integer[], $7::integer[], $8::integer[],
        $9::integer[], $10::boolean[], $11::bigint[], $12::bigint[], $13::boolean[]
    ) AS w (
        operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone,
        started_at, updated_at, is_ready
    )
),
later AS (
    INSERT INTO scheduled (
        operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone,
        started_at, updated_at
    )
    SELECT
        operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone,
        started_at, updated_at
    FROM waiting WHERE NOT is_ready
),
startable AS (
    INSERT INTO ready (
        operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone,
        started_at, updated_at
    )
    SELECT
        operation, tenant, priority, job_id, available_at, version, attempt, counted_attempts, crashes, is_alone,
        started_at, updated_at
    FROM waiting WHERE is_ready
),
joining AS (
    SELECT DISTINCT operation, tenant FROM waiting WHERE is_ready
),
-- Turns are locked in one order everywhere. The row that is returned is the newest one, whatever the snapshot shows.
held AS (
    SELECT t.operation, t.tenant, t.is_waiting
    FROM turn AS t JOIN joining AS j ON t.operation = j.operation AND t.tenant = j.tenant
    ORDER BY t.operation, t.tenant
    FOR KEY SHARE OF t
),
-- A newcomer starts level with the tenant that is next; where all who wait are held, the last of them left the order at
-- the highest level.
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
-- One that comes back starts not before its own last turn: nobody is served twice at one level while another waits.
back AS (
    UPDATE turn AS t SET is_waiting = true, vstart = greatest(t.vstart, l.level)
    FROM held AS h JOIN levels AS l ON l.operation = h.operation
    WHERE NOT h.is_waiting AND t.operation = h.operation AND t.tenant = h.tenant
),
-- The conflict is with a turn made since this statement began; to update it is to hold it.
come AS (
    INSERT INTO turn AS t (operation, tenant, is_waiting, vstart)
    SELECT j.operation, j.tenant, true, l.level
    FROM joining AS j JOIN levels AS l ON l.operation = j.operation
    WHERE NOT EXISTS (SELECT 1 FROM held AS h WHERE h.operation = j.operation AND h.tenant = j.tenant)
    ORDER BY j.operation, j.tenant
    ON CONFLICT (operation, tenant) DO UPDATE SET is_waiting = true, vstart = greatest(t.vstart, excluded.vstart)
)
SELECT count(*) FROM waiting
