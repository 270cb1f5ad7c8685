-- No row: the lease is lost. A row with NULL: nothing is recorded under this name.
SELECT (SELECT e.value FROM effect AS e WHERE e.chain_id = j.chain_id AND e.name = :name)
FROM lease AS l
JOIN job AS j ON j.id = l.job_id
WHERE l.job_id = :job_id AND l.attempt = :attempt AND l.token = :token
