DELETE FROM spending
WHERE (tenant, kind, window_ms, window_at, operation) IN (
    SELECT tenant, kind, window_ms, window_at, operation FROM spending
    WHERE window_at <= $1 ORDER BY window_at LIMIT $2
    FOR UPDATE SKIP LOCKED
)
