CREATE TABLE effect (
    chain_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    recorded_at bigint NOT NULL,
    PRIMARY KEY (chain_id, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05)
