SELECT kind, window_at, window_ms, operation, charged, spent FROM spending
WHERE tenant = :tenant
    AND (:window_at IS NULL OR (window_at, kind, window_ms, operation) < (:window_at, :kind, :window_ms, :operation))
ORDER BY window_at DESC, kind DESC, window_ms DESC, operation DESC
LIMIT :limit
