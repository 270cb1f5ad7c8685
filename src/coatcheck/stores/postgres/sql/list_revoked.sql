SELECT name FROM tenant
WHERE revocation IS NOT NULL AND (revocation_done_at IS NULL OR revocation_done_at >= $1) AND name > $2
ORDER BY name
LIMIT $3
