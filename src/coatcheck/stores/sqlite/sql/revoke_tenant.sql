UPDATE tenant SET revocation = :policy, revoked_at = :at, revocation_done_at = NULL, by_operation = :by_operation
WHERE name = :name
