CREATE TABLE effect (
    chain_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (chain_id, name)
) WITHOUT ROWID, STRICT
