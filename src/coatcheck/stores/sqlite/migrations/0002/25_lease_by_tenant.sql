-- For limits on running jobs, which are counted at each claim.
CREATE INDEX lease_by_tenant ON lease (tenant, operation)
