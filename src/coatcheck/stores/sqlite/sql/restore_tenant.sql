-- What was cancelled or erased cannot be brought back.
UPDATE tenant SET revocation = NULL, revoked_at = NULL, revocation_done_at = NULL
WHERE name = :name AND revocation IN ('finish', 'quarantine')
