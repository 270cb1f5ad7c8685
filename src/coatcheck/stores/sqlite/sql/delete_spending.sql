DELETE FROM spending
WHERE (tenant, kind, window_ms, window_at, operation) IN (
    SELECT tenant, kind, window_ms, window_at, operation FROM spending
    WHERE window_at <= :now ORDER BY window_at LIMIT :limit
)
