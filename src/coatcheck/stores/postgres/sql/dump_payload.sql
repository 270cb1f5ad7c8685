SELECT job_id, body FROM payload ORDER BY job_id
