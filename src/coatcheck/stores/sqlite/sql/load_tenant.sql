INSERT INTO tenant (name, created_at, weight, is_paused, revocation, revoked_at, revocation_done_at, by_operation, restored_at)
VALUES (
    :name, :created_at, :weight, :is_paused, :revocation, :revoked_at, :revocation_done_at, :by_operation, :restored_at
)
