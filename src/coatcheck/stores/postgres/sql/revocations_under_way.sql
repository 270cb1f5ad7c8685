SELECT name, revocation, by_operation, revoked_at, revocation_done_at FROM tenant
WHERE revocation IS NOT NULL AND revocation_done_at IS NULL
ORDER BY name
LIMIT $1
