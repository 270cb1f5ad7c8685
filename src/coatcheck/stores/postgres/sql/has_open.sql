-- Whether a tenant has anything that is not finished: in the inbox, in the operations of $2, or running in those of $3.
SELECT
    EXISTS (SELECT 1 FROM inbox AS i WHERE i.tenant = $1)
    OR EXISTS (
        SELECT 1 FROM unnest($2::text[]) AS o (operation)
        CROSS JOIN LATERAL (
            SELECT 1 FROM job AS j
            WHERE j.tenant = $1 AND j.operation = o.operation AND j.status IS NULL LIMIT 1
        ) AS open
    )
    OR EXISTS (SELECT 1 FROM lease AS l WHERE l.tenant = $1 AND l.operation = ANY ($3::text[]))
