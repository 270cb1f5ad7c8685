INSERT INTO tenant (name, created_at, weight, is_paused, revocation, revoked_at, revocation_done_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (name) DO NOTHING
