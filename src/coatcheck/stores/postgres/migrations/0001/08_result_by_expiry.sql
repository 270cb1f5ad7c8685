CREATE INDEX result_by_expiry ON result (expires_at) WHERE expires_at IS NOT NULL
