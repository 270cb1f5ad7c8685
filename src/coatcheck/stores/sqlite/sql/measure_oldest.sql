-- Two seeks: the jobs that never started stand in one run of ready_by_age; the retried ones are few.
SELECT min(oldest) FROM (
    SELECT min(available_at) AS oldest FROM ready WHERE operation = :operation AND attempt = 0
    UNION ALL
    SELECT min(available_at) FROM ready WHERE operation = :operation AND attempt > 0
)
