-- A tenant without work is remembered only while its last turn still lies ahead of somebody who waits and is not held.
DELETE FROM turn AS t
USING (
    SELECT f.operation, f.tenant FROM turn AS f
    WHERE NOT f.is_waiting AND f.operation = ANY ($1::text[]) AND f.vstart <= coalesce(
        (
            SELECT w.vstart FROM turn AS w
            WHERE w.operation = f.operation AND w.is_waiting AND NOT w.is_held ORDER BY w.vstart, w.tenant LIMIT 1
        ), 'infinity'
    )
    ORDER BY f.operation, f.tenant LIMIT $2
    FOR UPDATE OF f SKIP LOCKED
) AS idle
WHERE t.operation = idle.operation AND t.tenant = idle.tenant AND NOT t.is_waiting
