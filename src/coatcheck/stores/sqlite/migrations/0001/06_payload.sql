-- Apart from the job, so that ending a job never rewrites a large payload.
CREATE TABLE payload (
    job_id TEXT PRIMARY KEY,
    body BLOB NOT NULL
) WITHOUT ROWID, STRICT
