CREATE UNIQUE INDEX scheduled_by_job ON scheduled (job_id)
