-- Who may hand in work. A revoked tenant keeps its row, which tells what became of its jobs. by_operation holds, as a
-- JSON object, policies that stand in the place of its own in single operations; restored_at is when a quarantine ended.
CREATE TABLE tenant (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    weight REAL NOT NULL CHECK (weight > 0),
    is_paused INTEGER NOT NULL CHECK (is_paused IN (0, 1)),
    revocation TEXT CHECK (revocation IN ('finish', 'quarantine', 'cancel', 'erase')),
    revoked_at INTEGER,
    revocation_done_at INTEGER,
    by_operation TEXT NOT NULL DEFAULT '{}',
    restored_at INTEGER,
    CHECK ((revocation IS NULL) = (revoked_at IS NULL)),
    CHECK (revocation_done_at IS NULL OR revocation IS NOT NULL)
) WITHOUT ROWID, STRICT
