UPDATE api_key SET revoked_at = $2 WHERE tenant = $1 AND revoked_at IS NULL
