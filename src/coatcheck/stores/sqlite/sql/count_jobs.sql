-- One run of a tenant's jobs, as far as it is counted.
SELECT count(*) FROM (
    SELECT 1 FROM job WHERE tenant = :tenant AND operation = :operation AND status IS :status LIMIT :most
)
