-- expires_at is set only for a result that goes before its job.
CREATE TABLE result (
    job_id TEXT PRIMARY KEY,
    content_type TEXT NOT NULL,
    file_name TEXT,
    expires_at INTEGER,
    body BLOB NOT NULL
) WITHOUT ROWID, STRICT
