CREATE INDEX tenant_revoked ON tenant (name) WHERE revocation IS NOT NULL
