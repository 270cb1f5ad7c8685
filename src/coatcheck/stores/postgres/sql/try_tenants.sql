-- Who may count these tenants' running jobs and start more: whoever has the lock, until this transaction ends. A tenant
-- that another is just counting is left to it.
SELECT u.tenant, pg_try_advisory_xact_lock($1, hashtext(u.tenant)) FROM unnest($2::text[]) AS u (tenant)
