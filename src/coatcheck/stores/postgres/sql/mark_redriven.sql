-- Once only: a second redrive finds the link and follows it.
UPDATE job SET redriven_as = $3, version = version + 1, updated_at = $4
WHERE id = $1 AND tenant = $2 AND status = 'failed' AND redriven_as IS NULL
RETURNING id
