SELECT job_id FROM lease
WHERE tenant = :tenant AND operation = :operation AND job_id < :before
ORDER BY job_id DESC
LIMIT :limit
