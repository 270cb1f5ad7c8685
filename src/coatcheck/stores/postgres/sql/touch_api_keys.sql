-- Locked in the order of the ids, so that processes that touch the same keys wait for each other in a row.
WITH used AS (
    SELECT k.key_id, u.at
    FROM api_key AS k
    JOIN unnest($1::text[], $2::bigint[]) AS u (key_id, at) ON u.key_id = k.key_id
    WHERE coalesce(k.last_used_at, 0) < u.at
    ORDER BY k.key_id
    FOR UPDATE OF k
)
UPDATE api_key SET last_used_at = used.at
FROM used
WHERE api_key.key_id = used.key_id
