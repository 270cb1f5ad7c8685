-- Takes or keeps the turn; no row where another holds it.
INSERT INTO relay_turn AS r (holder, ends_at) VALUES ($1, clock_timestamp() + $2::interval)
ON CONFLICT (is_only) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
WHERE r.holder = excluded.holder OR r.ends_at <= clock_timestamp()
RETURNING holder
