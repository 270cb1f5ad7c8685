-- One row for each open job that has a deadline; none for the others.
CREATE TABLE deadline (
    deadline_at INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (deadline_at, job_id)
) WITHOUT ROWID, STRICT
