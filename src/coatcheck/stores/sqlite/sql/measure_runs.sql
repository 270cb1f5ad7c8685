-- The attempts of the newest jobs that ended on their own; a bounded sample for estimates.
SELECT j.operation, avg(a.finished_at - a.started_at)
FROM (SELECT job_id, started_at, finished_at FROM attempt ORDER BY job_id DESC LIMIT :sample) AS a
JOIN job AS j ON j.id = a.job_id
GROUP BY j.operation
