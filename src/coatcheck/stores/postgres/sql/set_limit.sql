-- Nothing changes where it is set like this, or too many others are set.
INSERT INTO limit_override AS l (name, tenant, operation, value)
SELECT $1::text, $2::text, $3::text, $4::double precision
WHERE
    (SELECT count(*) FROM limit_override) < $5::integer
    OR EXISTS (SELECT 1 FROM limit_override WHERE name = $1 AND tenant = $2 AND operation = $3)
ON CONFLICT (name, tenant, operation) DO UPDATE SET value = excluded.value WHERE l.value IS DISTINCT FROM excluded.value
