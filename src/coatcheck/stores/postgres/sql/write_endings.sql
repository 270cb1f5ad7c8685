-- What follows from the ends of attempts that did not succeed, and of jobs that had none: attempts, final statuses;
-- deadlines of ended jobs go.
WITH ended AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::integer[], $4::integer[], $5::integer[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::boolean[], $12::text[], $13::boolean[], $14::text[], $15::text[],
        $16::text[], $17::text[]
    ) AS e (
        job_id, status, version, attempt, counted_attempts, started_at, available_at, finished_at,
        expires_at, tombstone_until, cancel_requested, cancel_reason, is_dead_letter, error_category,
        error_detail, error_code, error_operator_detail
    )
),
attempts AS (
    INSERT INTO attempt (
        job_id, number, started_at, finished_at, outcome, error_category, error_detail, error_code,
        error_operator_detail
    )
    SELECT * FROM unnest(
        $18::text[], $19::integer[], $20::bigint[], $21::bigint[], $22::text[], $23::text[], $24::text[], $25::text[],
        $26::text[]
    )
),
-- Final is final: a job that has a status keeps it.
jobs AS (
    UPDATE job AS j
    SET status = e.status, version = e.version, attempt = e.attempt, counted_attempts = e.counted_attempts,
        started_at = e.started_at, available_at = e.available_at, updated_at = e.finished_at,
        finished_at = e.finished_at, expires_at = e.expires_at,
        -- A tombstone lives at least as long as the key that may still point to it.
        tombstone_until = greatest(e.tombstone_until, coalesce(j.key_expires_at, 0)),
        cancel_requested = e.cancel_requested, cancel_reason = e.cancel_reason,
        dead_lettered_at = CASE WHEN e.is_dead_letter THEN e.finished_at END,
        error_category = e.error_category, error_detail = e.error_detail, error_code = e.error_code,
        error_operator_detail = e.error_operator_detail
    FROM ended AS e
    WHERE j.id = e.job_id AND j.status IS NULL
    RETURNING j.id, j.deadline_at
),
deadlines AS (
    DELETE FROM deadline AS d USING jobs AS j
    WHERE j.deadline_at IS NOT NULL AND d.deadline_at = j.deadline_at AND d.job_id = j.id
)
SELECT count(*) FROM jobs
