-- Events still to be told, in the order of their commits. AUTOINCREMENT: a number is never given twice.
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    type TEXT NOT NULL,
    job_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    operation TEXT NOT NULL,
    version INTEGER NOT NULL,
    occurred_at INTEGER NOT NULL,
    correlation_id TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT
