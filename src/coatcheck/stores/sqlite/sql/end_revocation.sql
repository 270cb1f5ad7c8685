UPDATE tenant SET revocation_done_at = :now WHERE name = :tenant AND revocation IS NOT NULL AND revocation_done_at IS NULL
