-- Which of some keys, each with the job that was to have it, stand for that job.
SELECT json_group_array(k.job_id)
FROM (
VALUES (?, ?, ?, ?)
) AS wanted
CROSS JOIN idempotency_key AS k
    ON k.tenant = wanted.column1 AND k.operation = wanted.column2 AND k.key = wanted.column3
    AND k.job_id = wanted.column4
