-- For a tenant's limit on jobs that wait.
CREATE INDEX scheduled_by_tenant ON scheduled (tenant, operation)
