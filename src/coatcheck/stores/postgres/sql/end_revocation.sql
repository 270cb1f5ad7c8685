UPDATE tenant SET revocation_done_at = $2 WHERE name = $1 AND revocation IS NOT NULL AND revocation_done_at IS NULL
