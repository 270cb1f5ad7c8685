-- Whose worker said that it is alive less than a lease time ago, by this database's clock.
SELECT count(*) FROM lease WHERE ends_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint
