-- Jobs that must wait for their time: delayed by their client, or by a backoff.
CREATE TABLE scheduled (
    available_at INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    tenant TEXT NOT NULL,
    priority INTEGER NOT NULL,
    version INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    counted_attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    is_alone INTEGER NOT NULL CHECK (is_alone IN (0, 1)),
    started_at INTEGER,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (available_at, job_id)
) WITHOUT ROWID, STRICT
