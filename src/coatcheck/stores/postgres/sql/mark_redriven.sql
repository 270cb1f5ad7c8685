-- Once only: a second redrive finds the link and follows it. A revoked tenant gets no new work.
UPDATE job SET redriven_as = $3, version = version + 1, updated_at = $4
WHERE id = $1 AND tenant = $2 AND status = 'failed' AND redriven_as IS NULL
    AND NOT EXISTS (SELECT 1 FROM tenant AS t WHERE t.name = $2 AND t.revocation IS NOT NULL)
RETURNING id
