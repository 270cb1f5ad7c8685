-- Written only under the lease named, which is held until the commit. A spend whose number is counted already, or is
-- an earlier one, changes nothing.
WITH held AS (
    SELECT l.job_id, l.attempt, l.tenant, l.operation FROM lease AS l
    WHERE l.job_id = $1 AND l.attempt = $2 AND l.token = $3
    FOR KEY SHARE
),
counted AS (
    INSERT INTO job_cost AS c (job_id, kind, charged, spent, attempt, number, window_ms, window_at)
    SELECT h.job_id, $4, 0, $5::bigint, h.attempt, $6::integer, $7::bigint, $8::bigint FROM held AS h
    ON CONFLICT (job_id, kind) DO UPDATE
    SET spent = least(c.spent + excluded.spent, $9::bigint), attempt = excluded.attempt, number = excluded.number
    WHERE (c.attempt, c.number) < (excluded.attempt, excluded.number)
    RETURNING c.job_id
)
INSERT INTO spending AS s (tenant, kind, window_ms, window_at, operation, charged, spent)
SELECT h.tenant, $4, $7::bigint, $8::bigint, h.operation, 0, $5::bigint
FROM held AS h JOIN counted AS c ON c.job_id = h.job_id
ON CONFLICT (tenant, kind, window_ms, window_at, operation) DO UPDATE
SET spent = least(s.spent + excluded.spent, $9::bigint)
