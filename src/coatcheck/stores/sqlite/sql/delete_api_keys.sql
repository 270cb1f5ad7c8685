DELETE FROM api_key WHERE key_id IN (
    SELECT key_id FROM api_key WHERE coalesce(revoked_at, expires_at) <= :now LIMIT :limit
)
