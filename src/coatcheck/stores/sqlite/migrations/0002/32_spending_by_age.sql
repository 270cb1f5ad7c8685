CREATE INDEX spending_by_age ON spending (window_at)
