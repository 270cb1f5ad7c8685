SELECT job_id FROM ready
WHERE operation = $1 AND attempt = 0 AND available_at <= $2
ORDER BY available_at
LIMIT $3
FOR UPDATE SKIP LOCKED
