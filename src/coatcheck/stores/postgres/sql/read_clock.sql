-- In µs; clock_timestamp() and not now(), which is when the transaction began.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
