SELECT r.priority, r.job_id, j.deadline_at
FROM ready AS r
JOIN job AS j ON j.id = r.job_id
WHERE r.operation = :operation AND r.tenant = :tenant
ORDER BY r.priority, r.job_id
LIMIT 1
