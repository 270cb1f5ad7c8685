-- expires_at is set only for a result that goes before its job.
CREATE TABLE result (
    job_id text COLLATE "C" PRIMARY KEY,
    content_type text NOT NULL,
    file_name text,
    expires_at bigint,
    body bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05)
