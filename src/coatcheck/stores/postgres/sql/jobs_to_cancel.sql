-- Those of a tenant that wait, and those that run and have not been told to stop: at most as many rows as there are
-- leases are stepped over.
SELECT j.id FROM job AS j
WHERE j.tenant = $1 AND j.operation = $2 AND j.status IS NULL
    AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.job_id = j.id AND l.cancel_requested)
ORDER BY j.id
LIMIT $3
