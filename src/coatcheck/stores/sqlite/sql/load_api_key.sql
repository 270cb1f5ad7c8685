INSERT INTO api_key (
    key_id, tenant, digest, scopes, label, created_at, expires_at, revoked_at, last_used_at, lifetime_ms
)
VALUES (
    :key_id, :tenant, :digest, :scopes, :label, :created_at, :expires_at, :revoked_at, :last_used_at, :lifetime_ms
)
