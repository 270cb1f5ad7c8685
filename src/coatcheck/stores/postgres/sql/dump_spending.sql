SELECT tenant, kind, window_ms, window_at, operation, charged, spent FROM spending
ORDER BY tenant, kind, window_ms, window_at, operation
