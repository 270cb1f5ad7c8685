CREATE TABLE idempotency_key (
    tenant TEXT NOT NULL,
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    job_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, operation, key)
) WITHOUT ROWID, STRICT
