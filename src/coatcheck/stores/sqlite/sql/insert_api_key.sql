-- Refused for a tenant that is not there or revoked, and beside too many keys that are live; :old_key_id is not counted.
INSERT INTO api_key (
    key_id, tenant, digest, scopes, label, created_at, expires_at, revoked_at, last_used_at, lifetime_ms
)
SELECT :key_id, :tenant, :digest, :scopes, :label, :created_at, :expires_at, :revoked_at, :last_used_at, :lifetime_ms
WHERE
    EXISTS (SELECT 1 FROM tenant WHERE name = :tenant AND revocation IS NULL)
    AND (
        SELECT count(*) FROM api_key
        WHERE
            tenant = :tenant AND revoked_at IS NULL AND coalesce(expires_at, :created_at + 1) > :created_at
            AND key_id <> :old_key_id
    ) < :live_max
ON CONFLICT (key_id) DO NOTHING
