-- No row: the lease is lost. A row with NULL: nothing is recorded under this name.
SELECT (SELECT e.value FROM effect AS e WHERE e.chain_id = j.chain_id AND e.name = $4)
FROM lease AS l
JOIN job AS j ON j.id = l.job_id
WHERE l.job_id = $1 AND l.attempt = $2 AND l.token = $3
