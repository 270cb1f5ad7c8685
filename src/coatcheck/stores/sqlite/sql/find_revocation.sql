SELECT revocation, by_operation, revoked_at, revocation_done_at FROM tenant WHERE name = :tenant AND revocation IS NOT NULL
