-- A key that ends sooner keeps its end.
UPDATE api_key SET expires_at = min(:expires_at, coalesce(expires_at, :expires_at)) WHERE key_id = :key_id
