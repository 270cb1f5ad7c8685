SELECT job_id FROM ready
WHERE operation = :operation AND attempt = 0 AND available_at <= :latest
ORDER BY available_at
LIMIT :limit
