-- Jobs that may start now, in the order in which their tenant wants them.
CREATE TABLE ready (
    operation TEXT NOT NULL,
    tenant TEXT NOT NULL,
    priority INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    available_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    counted_attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    is_alone INTEGER NOT NULL CHECK (is_alone IN (0, 1)),
    started_at INTEGER,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (operation, tenant, priority, job_id)
) WITHOUT ROWID, STRICT
