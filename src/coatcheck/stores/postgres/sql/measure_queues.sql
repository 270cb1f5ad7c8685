-- Every queue in one snapshot. The sample of runs is bounded: the attempts of the newest jobs that ended.
WITH counts AS (
    SELECT operation, count(*) AS ready, 0 AS scheduled, 0 AS running, NULL::float8 AS run_ms, min(available_at) AS oldest
    FROM ready GROUP BY operation
    UNION ALL
    SELECT operation, 0, count(*), 0, NULL, NULL FROM scheduled GROUP BY operation
    UNION ALL
    SELECT operation, 0, 0, count(*), NULL, NULL FROM lease GROUP BY operation
    UNION ALL
    SELECT j.operation, 0, 0, 0, avg(a.finished_at - a.started_at), NULL
    FROM (SELECT job_id, started_at, finished_at FROM attempt ORDER BY job_id DESC LIMIT $1) AS a
    JOIN job AS j ON j.id = a.job_id
    GROUP BY j.operation
)
SELECT
    operation, sum(ready)::bigint, sum(scheduled)::bigint, sum(running)::bigint, min(oldest), max(run_ms)
FROM counts GROUP BY operation ORDER BY operation
