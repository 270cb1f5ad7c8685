SELECT kind, window_at, window_ms, operation, charged, spent FROM spending
WHERE tenant = $1
    AND (
        $3::bigint IS NULL
        OR (window_at, kind, window_ms, operation) < ($3::bigint, $4::text, $5::bigint, $6::text)
    )
ORDER BY window_at DESC, kind DESC, window_ms DESC, operation DESC
LIMIT $2
