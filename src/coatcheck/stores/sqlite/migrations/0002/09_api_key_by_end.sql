CREATE INDEX api_key_by_end ON api_key (coalesce(revoked_at, expires_at))
