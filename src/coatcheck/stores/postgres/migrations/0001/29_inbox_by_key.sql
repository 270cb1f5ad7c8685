CREATE INDEX inbox_by_key ON inbox (tenant, operation, key) WHERE key IS NOT NULL
