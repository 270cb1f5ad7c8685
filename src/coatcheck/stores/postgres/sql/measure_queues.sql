-- Every queue in one snapshot. The sample of runs is bounded: the attempts of the newest jobs that ended. So are the
-- tenants, the longest lines first, as lists of equal order.
WITH waiting AS MATERIALIZED (
    SELECT
        operation, tenant, count(*) AS jobs, min(job_id) AS first_id, max(job_id) AS last_id,
        max(priority) AS last_priority, min(available_at) AS oldest
    FROM ready GROUP BY operation, tenant
),
lines AS MATERIALIZED (
    SELECT operation, tenant, jobs, first_id, last_id, last_priority FROM waiting ORDER BY jobs DESC, tenant LIMIT $2
),
counts AS (
    SELECT
        operation, sum(jobs) AS ready, 0 AS scheduled, 0 AS running, NULL::bigint AS runs, NULL::float8 AS run_ms,
        NULL::float8 AS spread_ms, min(oldest) AS oldest
    FROM waiting GROUP BY operation
    UNION ALL
    SELECT operation, 0, count(*), 0, NULL, NULL, NULL, NULL FROM scheduled GROUP BY operation
    UNION ALL
    SELECT operation, 0, 0, count(*), NULL, NULL, NULL, NULL FROM lease GROUP BY operation
    UNION ALL
    SELECT
        j.operation, 0, 0, 0, count(*), avg(a.finished_at - a.started_at), stddev_pop(a.finished_at - a.started_at), NULL
    FROM (SELECT job_id, started_at, finished_at FROM attempt ORDER BY job_id DESC LIMIT $1) AS a
    JOIN job AS j ON j.id = a.job_id
    GROUP BY j.operation
)
SELECT
    c.operation, sum(c.ready)::bigint, sum(c.scheduled)::bigint, sum(c.running)::bigint, min(c.oldest),
    coalesce(max(c.runs), 0), max(c.run_ms), max(c.spread_ms),
    array(SELECT l.tenant FROM lines AS l WHERE l.operation = c.operation ORDER BY l.jobs DESC, l.tenant),
    array(SELECT l.jobs FROM lines AS l WHERE l.operation = c.operation ORDER BY l.jobs DESC, l.tenant),
    array(SELECT l.first_id FROM lines AS l WHERE l.operation = c.operation ORDER BY l.jobs DESC, l.tenant),
    array(SELECT l.last_id FROM lines AS l WHERE l.operation = c.operation ORDER BY l.jobs DESC, l.tenant),
    array(SELECT l.last_priority FROM lines AS l WHERE l.operation = c.operation ORDER BY l.jobs DESC, l.tenant)
FROM counts AS c GROUP BY c.operation ORDER BY c.operation
