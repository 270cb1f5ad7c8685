-- What jobs were charged goes back into the windows that it came from, as far as they are still kept.
WITH charges AS MATERIALIZED (
    SELECT c.job_id, c.kind, c.charged, c.window_ms, c.window_at, j.tenant, j.operation
    FROM job_cost AS c JOIN job AS j ON j.id = c.job_id
    WHERE c.job_id = ANY ($1::text[]) AND c.charged > 0
    ORDER BY c.job_id, c.kind
    FOR UPDATE OF c
),
emptied AS (
    UPDATE job_cost AS c SET charged = 0 FROM charges AS g WHERE c.job_id = g.job_id AND c.kind = g.kind
),
sums AS MATERIALIZED (
    SELECT tenant, kind, window_ms, window_at, operation, sum(charged)::bigint AS charged FROM charges
    GROUP BY tenant, kind, window_ms, window_at, operation
),
held AS MATERIALIZED (
    SELECT s.tenant, s.kind, s.window_ms, s.window_at, s.operation
    FROM spending AS s JOIN sums AS g USING (tenant, kind, window_ms, window_at, operation)
    ORDER BY s.tenant, s.kind, s.window_ms, s.window_at, s.operation
    FOR UPDATE OF s
)
UPDATE spending AS s SET charged = greatest(s.charged - g.charged, 0)
FROM sums AS g JOIN held AS h USING (tenant, kind, window_ms, window_at, operation)
WHERE s.tenant = g.tenant AND s.kind = g.kind AND s.window_ms = g.window_ms AND s.window_at = g.window_at
    AND s.operation = g.operation
