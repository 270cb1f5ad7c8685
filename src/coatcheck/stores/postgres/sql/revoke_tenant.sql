UPDATE tenant SET revocation = $2, revoked_at = $3, revocation_done_at = NULL, by_operation = $4
WHERE name = $1
