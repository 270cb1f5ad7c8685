CREATE INDEX api_key_by_tenant ON api_key (tenant, created_at, key_id)
