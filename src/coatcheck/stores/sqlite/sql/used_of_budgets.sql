-- What a tenant's jobs cost in windows: in an operation, or ('') in all of them.
SELECT json_group_array(json_array(
    wanted.column1, wanted.column2, wanted.column3, wanted.column4, wanted.column5,
    (
        SELECT coalesce(sum(s.charged + s.spent), 0) FROM spending AS s
        WHERE s.tenant = wanted.column1 AND s.kind = wanted.column2 AND s.window_at = wanted.column3
            AND s.window_ms = wanted.column4 AND wanted.column5 IN ('', s.operation)
    )
))
FROM (
VALUES (?, ?, ?, ?, ?)
) AS wanted
WHERE wanted.column1 IS NOT NULL
