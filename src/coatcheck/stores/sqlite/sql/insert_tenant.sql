INSERT INTO tenant (name, created_at, weight, is_paused, revocation, revoked_at, revocation_done_at)
VALUES (:name, :created_at, :weight, :is_paused, :revocation, :revoked_at, :revocation_done_at)
ON CONFLICT (name) DO NOTHING
