SELECT
    job_id, number, started_at, finished_at, outcome, error_category, error_detail, error_code,
    error_operator_detail
FROM attempt
ORDER BY job_id, number
