-- What of a revoked tenant has to end yet: in the inbox, in the operations of $2, or running in those of $3; and what
-- is to be erased in those of $4. Each as far as it is counted.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM inbox AS i WHERE i.tenant = $1 LIMIT $5) AS few)
    + (
        SELECT count(*) FROM unnest($2::text[]) AS o (operation)
        CROSS JOIN LATERAL (
            SELECT 1 FROM job AS j
            WHERE j.tenant = $1 AND j.operation = o.operation AND j.status IS NULL LIMIT $5
        ) AS few
    )
    + (SELECT count(*) FROM lease AS l WHERE l.tenant = $1 AND l.operation = ANY ($3::text[])),
    (
        SELECT count(*) FROM unnest($4::text[]) AS o (operation)
        CROSS JOIN unnest(ARRAY['succeeded', 'failed', 'cancelled']) AS s (status)
        CROSS JOIN LATERAL (
            SELECT 1 FROM job AS j
            WHERE j.tenant = $1 AND j.operation = o.operation AND j.status = s.status LIMIT $5
        ) AS few
    )
