WITH used (key_id, at) AS (
VALUES (?, ?)
)
UPDATE api_key SET last_used_at = used.at
FROM used
WHERE api_key.key_id = used.key_id AND coalesce(api_key.last_used_at, 0) < used.at
