-- One run of the primary key, and no more of it than is asked for.
SELECT count(*) FROM (
    SELECT 1 FROM ready
    WHERE operation = :operation AND tenant = :tenant AND (priority, job_id) < (:priority, :job_id)
    LIMIT :limit
)
