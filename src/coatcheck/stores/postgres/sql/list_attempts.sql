SELECT
    a.number, a.started_at, a.finished_at, a.outcome,
    a.error_category, a.error_detail, a.error_code, a.error_operator_detail
FROM attempt AS a
JOIN job AS j ON j.id = a.job_id
WHERE j.id = $1 AND j.tenant = $2
UNION ALL
SELECT l.attempt, l.attempt_started_at, NULL, NULL, NULL, NULL, NULL, NULL
FROM lease AS l
WHERE l.job_id = $1 AND l.tenant = $2
ORDER BY 1
LIMIT $3
