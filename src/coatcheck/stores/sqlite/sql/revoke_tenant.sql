UPDATE tenant SET revocation = :policy, revoked_at = :at, revocation_done_at = NULL
WHERE name = :name AND (revocation IS NULL OR revocation IN (SELECT value FROM json_each(:weaker)))
