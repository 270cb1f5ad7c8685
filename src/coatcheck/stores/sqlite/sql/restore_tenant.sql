-- What was cancelled or erased cannot be brought back.
UPDATE tenant
SET revocation = NULL, revoked_at = NULL, revocation_done_at = NULL, by_operation = '{}', restored_at = :at
WHERE name = :name AND revocation IN ('finish', 'quarantine')
