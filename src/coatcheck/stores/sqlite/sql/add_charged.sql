INSERT INTO spending (tenant, kind, window_ms, window_at, operation, charged, spent)
VALUES (:tenant, :kind, :window_ms, :window_at, :operation, :units, 0)
ON CONFLICT (tenant, kind, window_ms, window_at, operation) DO UPDATE
SET charged = min(spending.charged + excluded.charged, :most)
