-- One run of the primary key, and no more of it than is asked for.
SELECT count(*) FROM (
    SELECT 1 FROM ready WHERE operation = $1 AND tenant = $2 AND (priority, job_id) < ($3, $4) LIMIT $5
) AS ahead
