-- How long the attempts of jobs that have ended ran, in ms.
SELECT job_id, sum(greatest(finished_at - started_at, 0))::bigint FROM attempt
WHERE job_id = ANY ($1::text[])
GROUP BY job_id
