UPDATE tenant SET revocation = $2, revoked_at = $3, revocation_done_at = NULL, by_operation = $5
WHERE name = $1 AND (revocation IS NULL OR revocation = ANY ($4::text[]))
