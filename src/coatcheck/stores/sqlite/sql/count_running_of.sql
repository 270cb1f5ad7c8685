SELECT count(*) FROM lease WHERE tenant = :tenant
