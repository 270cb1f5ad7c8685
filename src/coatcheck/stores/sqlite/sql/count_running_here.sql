-- How many of a tenant's jobs run in an operation.
SELECT count(*) FROM lease WHERE tenant = :tenant AND operation = :operation
