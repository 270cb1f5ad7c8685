-- What a tenant's jobs cost in each window of a kind, by operation, in millionths of a unit.
CREATE TABLE spending (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    window_ms INTEGER NOT NULL,
    window_at INTEGER NOT NULL,
    operation TEXT NOT NULL,
    charged INTEGER NOT NULL CHECK (charged >= 0),
    spent INTEGER NOT NULL CHECK (spent >= 0),
    PRIMARY KEY (tenant, kind, window_ms, window_at, operation)
) WITHOUT ROWID, STRICT
