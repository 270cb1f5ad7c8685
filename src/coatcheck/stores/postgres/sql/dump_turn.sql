-- Who waits follows from the ready jobs.
SELECT operation, tenant, vstart FROM turn ORDER BY operation, tenant
