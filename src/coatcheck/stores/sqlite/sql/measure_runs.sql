-- The attempts of the newest jobs that ended on their own; a bounded sample for estimates: count, mean, mean square.
SELECT j.operation, count(*), avg(a.run_ms), avg(a.run_ms * a.run_ms)
FROM (
    SELECT job_id, CAST(finished_at - started_at AS REAL) AS run_ms FROM attempt ORDER BY job_id DESC LIMIT :sample
) AS a
JOIN job AS j ON j.id = a.job_id
GROUP BY j.operation
