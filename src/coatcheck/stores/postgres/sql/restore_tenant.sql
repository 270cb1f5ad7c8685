-- What was cancelled or erased cannot be brought back.
UPDATE tenant SET revocation = NULL, revoked_at = NULL, revocation_done_at = NULL
WHERE name = $1 AND revocation IN ('finish', 'quarantine')
