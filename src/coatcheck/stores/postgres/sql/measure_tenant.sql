-- What of a tenant is not finished, what of it runs, and what is finished and kept, each as far as it is counted.
SELECT
    (
        SELECT count(*) FROM unnest($2::text[]) AS o (operation)
        CROSS JOIN LATERAL (
            SELECT 1 FROM job AS j
            WHERE j.tenant = $1 AND j.operation = o.operation AND j.status IS NULL LIMIT $3
        ) AS few
    ) + (
        SELECT count(*) FROM (SELECT 1 FROM inbox AS i WHERE i.tenant = $1 LIMIT $3) AS few
    ),
    (SELECT count(*) FROM lease AS l WHERE l.tenant = $1),
    (
        SELECT count(*) FROM unnest($2::text[]) AS o (operation)
        CROSS JOIN unnest(ARRAY['succeeded', 'failed', 'cancelled']) AS s (status)
        CROSS JOIN LATERAL (
            SELECT 1 FROM job AS j
            WHERE j.tenant = $1 AND j.operation = o.operation AND j.status = s.status LIMIT $3
        ) AS few
    )
