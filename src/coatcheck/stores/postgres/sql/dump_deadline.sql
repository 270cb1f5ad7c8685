SELECT deadline_at, job_id FROM deadline ORDER BY deadline_at, job_id
