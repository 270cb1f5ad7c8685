INSERT INTO spending (tenant, kind, window_ms, window_at, operation, charged, spent)
VALUES (:tenant, :kind, :window_ms, :window_at, :operation, :charged, :spent)
