-- A lease ends by the database's clock, read when the row is written: clock_timestamp(), since now() is when the
-- transaction began. $16 takes its place where a test moves time by hand.
INSERT INTO lease (
    job_id, operation, tenant, priority, token, worker_id, available_at, version, attempt, counted_attempts, crashes,
    is_alone, started_at, attempt_started_at, updated_at, ends_at
)
SELECT
    l.*, coalesce($16::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + $17::bigint
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::smallint[], $5::text[], $6::text[], $7::bigint[], $8::integer[],
    $9::integer[], $10::integer[], $11::integer[], $12::boolean[], $13::bigint[], $14::bigint[], $15::bigint[]
) AS l
