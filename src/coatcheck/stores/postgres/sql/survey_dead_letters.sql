-- The same, of dead letters.
SELECT j.id, j.tenant, j.operation, j.status, j.error_category, j.finished_at, j.expires_at
FROM job AS j
WHERE j.dead_lettered_at IS NOT NULL AND j.redriven_as IS NULL AND j.id < $1 AND j.id >= $2
ORDER BY j.id DESC
LIMIT $3
