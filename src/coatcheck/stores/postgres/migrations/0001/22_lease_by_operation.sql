-- For an operation's own bound on attempts that run at once, and for lists.
CREATE INDEX lease_by_operation ON lease (operation, tenant, job_id)
