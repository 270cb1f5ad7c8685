-- Lists: every page is a merge of runs of this index, whatever it filters by.
CREATE INDEX job_by_tenant ON job (tenant, operation, status, id)
