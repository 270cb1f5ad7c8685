-- What a tenant's jobs cost in each window of a kind, by operation, in millionths of a unit.
CREATE TABLE spending (
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    window_ms bigint NOT NULL,
    window_at bigint NOT NULL,
    operation text COLLATE "C" NOT NULL,
    charged bigint NOT NULL CHECK (charged >= 0),
    spent bigint NOT NULL CHECK (spent >= 0),
    PRIMARY KEY (tenant, kind, window_ms, window_at, operation)
) WITH (autovacuum_vacuum_scale_factor = 0.05, fillfactor = 70)
