-- A key that ends sooner keeps its end.
UPDATE api_key SET expires_at = least($2, coalesce(expires_at, $2)) WHERE key_id = $1
