CREATE INDEX audit_by_tenant ON audit (tenant, seq) WHERE tenant IS NOT NULL
