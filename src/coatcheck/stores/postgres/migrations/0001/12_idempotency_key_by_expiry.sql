CREATE INDEX idempotency_key_by_expiry ON idempotency_key (expires_at)
