-- Each job served has its cost, which is 1 where nobody weighs more than others: the tenant goes behind those that waited
-- as long. Locked in one order, and for moments only: a turn that is lost with its server costs a little fairness and no job, so nothing waits for the disk here.
WITH served AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::double precision[]) AS s (operation, tenant, cost)
),
cheap AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
),
held AS (
    SELECT t.operation, t.tenant
    FROM turn AS t JOIN served AS s ON t.operation = s.operation AND t.tenant = s.tenant
    ORDER BY t.operation, t.tenant
    FOR NO KEY UPDATE OF t
)
UPDATE turn AS t SET vstart = t.vstart + s.cost
FROM held AS h JOIN served AS s ON s.operation = h.operation AND s.tenant = h.tenant CROSS JOIN cheap
WHERE t.operation = h.operation AND t.tenant = h.tenant
