-- Of turns that this transaction holds, those whose tenant has nothing ready any more.
UPDATE turn AS t SET is_waiting = false, is_held = false
FROM unnest($1::text[], $2::text[]) AS d (operation, tenant)
WHERE t.operation = d.operation AND t.tenant = d.tenant
    AND NOT EXISTS (SELECT 1 FROM ready AS r WHERE r.operation = d.operation AND r.tenant = d.tenant)
