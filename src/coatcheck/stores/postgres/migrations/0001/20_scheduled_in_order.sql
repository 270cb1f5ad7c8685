CREATE INDEX scheduled_in_order ON scheduled (available_at, job_id)
