SELECT job_id, operation, tenant, priority FROM scheduled WHERE available_at <= :now ORDER BY available_at, job_id LIMIT :limit
