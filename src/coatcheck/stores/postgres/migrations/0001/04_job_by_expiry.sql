CREATE INDEX job_by_expiry ON job (expires_at) WHERE expires_at IS NOT NULL
