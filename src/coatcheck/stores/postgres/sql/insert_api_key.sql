-- Refused for a tenant that is not there or revoked, and beside too many keys that are live; $11 is not counted.
INSERT INTO api_key (
    key_id, tenant, digest, scopes, label, created_at, expires_at, revoked_at, last_used_at, lifetime_ms
)
SELECT $1, $2::text, $3, $4, $5, $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::bigint
WHERE
    EXISTS (SELECT 1 FROM tenant WHERE name = $2 AND revocation IS NULL)
    AND (
        SELECT count(*) FROM api_key
        WHERE
            tenant = $2 AND revoked_at IS NULL AND coalesce(expires_at, $6 + 1) > $6
            AND key_id <> $11
    ) < $12::integer
ON CONFLICT (key_id) DO NOTHING
