CREATE TABLE idempotency_key (
    tenant text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    algorithm text NOT NULL,
    fingerprint text NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant, operation, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05)
