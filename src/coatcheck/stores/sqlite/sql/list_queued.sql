-- Steps over at most as many rows as there are leases.
SELECT id FROM job AS j
WHERE j.tenant = :tenant AND j.operation = :operation AND j.status IS NULL AND j.id < :before
    AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.job_id = j.id)
ORDER BY j.id DESC
LIMIT :limit
