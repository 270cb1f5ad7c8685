-- Erased before its time, or expired at its time however late the sweep comes: a job's rows go, its tombstone stays.
WITH gone AS (
    DELETE FROM job WHERE id = ANY ($1::text[]) AND status IS NOT NULL
    RETURNING id, tenant, operation, expires_at, tombstone_until, chain_id
),
tombstones AS (
    INSERT INTO tombstone (job_id, tenant, operation, expired_at, kept_until)
    SELECT id, tenant, operation, least($2::bigint, expires_at), tombstone_until FROM gone
),
results AS (
    DELETE FROM result USING gone WHERE result.job_id = gone.id
),
payloads AS (
    DELETE FROM payload USING gone WHERE payload.job_id = gone.id
),
attempts AS (
    DELETE FROM attempt USING gone WHERE attempt.job_id = gone.id
),
costs AS (
    DELETE FROM job_cost USING gone WHERE job_cost.job_id = gone.id
)
SELECT id, chain_id FROM gone
