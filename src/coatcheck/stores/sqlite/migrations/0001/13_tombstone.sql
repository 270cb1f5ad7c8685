CREATE TABLE tombstone (
    job_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    operation TEXT NOT NULL,
    expired_at INTEGER NOT NULL,
    kept_until INTEGER NOT NULL
) WITHOUT ROWID, STRICT
