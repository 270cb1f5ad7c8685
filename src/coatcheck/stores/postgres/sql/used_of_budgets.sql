-- What a tenant's jobs cost in windows: in an operation, or ('') in all of them.
SELECT w.tenant, w.kind, w.window_at, w.window_ms, w.operation, (
    SELECT coalesce(sum(s.charged + s.spent), 0)::bigint FROM spending AS s
    WHERE s.tenant = w.tenant AND s.kind = w.kind AND s.window_ms = w.window_ms AND s.window_at = w.window_at
        AND w.operation IN ('', s.operation)
)
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[])
    AS w (tenant, kind, window_at, window_ms, operation)
