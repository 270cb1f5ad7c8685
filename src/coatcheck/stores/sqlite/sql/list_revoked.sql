SELECT name FROM tenant
WHERE revocation IS NOT NULL AND (revocation_done_at IS NULL OR revocation_done_at >= :done_since) AND name > :after
ORDER BY name
LIMIT :limit
