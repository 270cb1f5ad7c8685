-- One row for each attempt that ended; the one that runs is the lease.
CREATE TABLE attempt (
    job_id TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 1),
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    error_category TEXT,
    error_detail TEXT,
    error_code TEXT,
    error_operator_detail TEXT,
    PRIMARY KEY (job_id, number)
) WITHOUT ROWID, STRICT
