-- The database's clock in ms, since when it runs, and whether any lease ran out by it.
SELECT
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint,
    EXISTS (
        SELECT 1 FROM lease
        WHERE ends_at <= coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    )
