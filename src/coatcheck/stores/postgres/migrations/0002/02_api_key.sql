-- A key is known by its id, which is its beginning; of the rest only the SHA-256 is kept.
CREATE TABLE api_key (
    key_id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    scopes text NOT NULL,
    label text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    last_used_at bigint,
    lifetime_ms bigint
)
