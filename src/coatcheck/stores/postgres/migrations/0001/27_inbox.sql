-- Jobs handed in within somebody else's transaction: what is committed here is accepted, and moves on to the queue at
-- the next look. One insert that touches no row, counter or lock of anybody else's, so that a transaction that stays
-- open holds up nobody. A key is only noted: to reserve it here would make its other users wait for that transaction.
CREATE TABLE inbox (
    job_id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    operation_version text NOT NULL,
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 9),
    max_attempts integer NOT NULL CHECK (max_attempts >= 1),
    created_at bigint NOT NULL,
    available_at bigint NOT NULL,
    deadline_at bigint,
    correlation_id text NOT NULL,
    traceparent text,
    payload bytea NOT NULL,
    key text COLLATE "C",
    algorithm text,
    fingerprint text,
    key_expires_at bigint,
    CHECK ((key IS NULL) = (algorithm IS NULL)),
    CHECK ((key IS NULL) = (fingerprint IS NULL)),
    CHECK ((key IS NULL) = (key_expires_at IS NULL))
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
)
