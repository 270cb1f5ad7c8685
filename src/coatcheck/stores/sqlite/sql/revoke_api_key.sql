UPDATE api_key SET revoked_at = :at WHERE key_id = :key_id AND revoked_at IS NULL
