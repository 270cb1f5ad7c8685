-- For lists, which show what is handed in before it is in the queue.
CREATE INDEX inbox_by_tenant ON inbox (tenant, job_id)
