-- Takes jobs out of wherever they wait; no row for a job that does not wait.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[]) AS w (operation, tenant, priority, job_id)
),
held_ready AS (
    SELECT r.job_id
    FROM ready AS r
    JOIN wanted AS w
        ON r.operation = w.operation AND r.tenant = w.tenant AND r.priority = w.priority AND r.job_id = w.job_id
    ORDER BY r.job_id
    FOR UPDATE OF r
),
was_ready AS (
    DELETE FROM ready AS r USING wanted AS w, held_ready AS h
    WHERE h.job_id = w.job_id
        AND r.operation = w.operation AND r.tenant = w.tenant AND r.priority = w.priority AND r.job_id = w.job_id
    RETURNING r.job_id, true AS was_ready, r.available_at, r.version, r.attempt, r.counted_attempts, r.crashes, r.is_alone, r.started_at, r.updated_at
),
held_scheduled AS (
    SELECT s.job_id FROM scheduled AS s JOIN wanted AS w ON s.job_id = w.job_id
    ORDER BY s.job_id
    FOR UPDATE OF s
),
was_scheduled AS (
    DELETE FROM scheduled AS s USING held_scheduled AS h
    WHERE s.job_id = h.job_id
    RETURNING s.job_id, false AS was_ready, s.available_at, s.version, s.attempt, s.counted_attempts, s.crashes, s.is_alone, s.started_at, s.updated_at
)
SELECT * FROM was_ready UNION ALL SELECT * FROM was_scheduled
