-- After the database's clock was set back, no lease may last longer than one given now.
UPDATE lease SET ends_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::bigint
WHERE job_id IN (
    SELECT job_id FROM lease
    WHERE ends_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::bigint
    ORDER BY job_id
    FOR NO KEY UPDATE SKIP LOCKED
)
