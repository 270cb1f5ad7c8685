-- What a job cost, in millionths of a unit of each kind: charged at its acceptance, in the window that began then, and
-- spent since. attempt and number name the last spend that is counted, so that a repeat of it is not counted again.
CREATE TABLE job_cost (
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    charged INTEGER NOT NULL CHECK (charged >= 0),
    spent INTEGER NOT NULL CHECK (spent >= 0),
    attempt INTEGER NOT NULL,
    number INTEGER NOT NULL,
    window_ms INTEGER NOT NULL,
    window_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, kind)
) WITHOUT ROWID, STRICT
