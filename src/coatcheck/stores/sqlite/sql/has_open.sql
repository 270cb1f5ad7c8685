-- Whether a tenant has jobs in an operation that are not finished; or, with is_running, that run.
SELECT CASE
    WHEN :is_running THEN EXISTS (SELECT 1 FROM lease WHERE tenant = :tenant AND operation = :operation)
    ELSE EXISTS (SELECT 1 FROM job WHERE tenant = :tenant AND operation = :operation AND status IS NULL)
END
