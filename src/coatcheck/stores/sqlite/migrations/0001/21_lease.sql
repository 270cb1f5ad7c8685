-- The right to run one attempt. This row is the fence: a worker's write that does not find its own token here
-- changes nothing. beat moves with every heartbeat; a rescuer acts only on a beat it has seen stand still.
CREATE TABLE lease (
    job_id TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    tenant TEXT NOT NULL,
    priority INTEGER NOT NULL,
    token TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    beat INTEGER NOT NULL DEFAULT 0,
    available_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    counted_attempts INTEGER NOT NULL CHECK (counted_attempts >= 1),
    crashes INTEGER NOT NULL,
    is_alone INTEGER NOT NULL CHECK (is_alone IN (0, 1)),
    started_at INTEGER NOT NULL,
    attempt_started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    progress_fraction REAL,
    progress_message TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    cancel_reason TEXT
) WITHOUT ROWID, STRICT
