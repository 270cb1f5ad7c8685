-- What was cancelled or erased cannot be brought back.
UPDATE tenant SET revocation = NULL, revoked_at = NULL, revocation_done_at = NULL, by_operation = '{}', restored_at = $2
WHERE name = $1 AND revocation IN ('finish', 'quarantine')
