-- A key is known by its id, which is its beginning; of the rest only the SHA-256 is kept.
CREATE TABLE api_key (
    key_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    scopes TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    lifetime_ms INTEGER
) WITHOUT ROWID, STRICT
