-- For the queue limit, which holds for jobs that never started, and for the age of the oldest ready job.
CREATE INDEX ready_by_age ON ready (operation, attempt, available_at)
