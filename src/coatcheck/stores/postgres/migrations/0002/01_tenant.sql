-- Who may hand in work. A revoked tenant keeps its row, which tells what became of its jobs. by_operation holds, as a
-- JSON object, policies that stand in the place of its own in single operations; restored_at is when a quarantine ended.
CREATE TABLE tenant (
    name text COLLATE "C" PRIMARY KEY,
    created_at bigint NOT NULL,
    weight double precision NOT NULL CHECK (weight > 0),
    is_paused boolean NOT NULL,
    revocation text CHECK (revocation IN ('finish', 'quarantine', 'cancel', 'erase')),
    revoked_at bigint,
    revocation_done_at bigint,
    by_operation text NOT NULL DEFAULT '{}',
    restored_at bigint,
    CHECK ((revocation IS NULL) = (revoked_at IS NULL)),
    CHECK (revocation_done_at IS NULL OR revocation IS NOT NULL)
)
