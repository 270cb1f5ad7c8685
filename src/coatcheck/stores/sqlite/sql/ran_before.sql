-- How long the attempts of jobs that have ended ran, in ms.
SELECT json_group_array(json_array(job_id, ran_ms))
FROM (
    SELECT a.job_id, sum(max(a.finished_at - a.started_at, 0)) AS ran_ms
    FROM (
VALUES (?)
    ) AS wanted
    CROSS JOIN attempt AS a ON a.job_id = wanted.column1
    GROUP BY a.job_id
)
