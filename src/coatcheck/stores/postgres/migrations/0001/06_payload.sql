-- Apart from the job, so that ending a job never rewrites a large payload.
CREATE TABLE payload (
    job_id text COLLATE "C" PRIMARY KEY,
    body bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05)
