-- The strongest lock there is: got only where no acceptance is about to bring the tenant more work. Whoever looks
-- after this sees all the work that came before.
SELECT t.operation, t.tenant
FROM turn AS t JOIN unnest($1::text[], $2::text[]) AS d (operation, tenant)
    ON t.operation = d.operation AND t.tenant = d.tenant
ORDER BY t.operation, t.tenant
FOR UPDATE OF t SKIP LOCKED
