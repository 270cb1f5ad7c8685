UPDATE api_key SET revoked_at = :now WHERE tenant = :tenant AND revoked_at IS NULL
