DELETE FROM tombstone WHERE job_id IN (SELECT job_id FROM tombstone WHERE kept_until <= :now ORDER BY kept_until LIMIT :limit)
