SELECT name, created_at, weight, is_paused, revocation, revoked_at, revocation_done_at, by_operation, restored_at
FROM tenant WHERE name = $1
