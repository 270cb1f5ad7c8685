SELECT key_id, tenant, digest, scopes, label, created_at, expires_at, revoked_at, last_used_at, lifetime_ms
FROM api_key WHERE key_id = :key_id
