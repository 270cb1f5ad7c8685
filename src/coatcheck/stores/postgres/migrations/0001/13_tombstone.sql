CREATE TABLE tombstone (
    job_id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    expired_at bigint NOT NULL,
    kept_until bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05)
