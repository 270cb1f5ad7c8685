INSERT INTO attempt (
    job_id, number, started_at, finished_at, outcome, error_category, error_detail, error_code, error_operator_detail
)
SELECT * FROM (
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
) WHERE column1 IS NOT NULL
