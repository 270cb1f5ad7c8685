-- Operations that are not simply open.
CREATE TABLE operation_mode (
    operation TEXT PRIMARY KEY,
    mode TEXT NOT NULL CHECK (mode IN ('paused', 'draining'))
) WITHOUT ROWID, STRICT
