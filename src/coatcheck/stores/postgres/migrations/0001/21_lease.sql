-- The right to run one attempt. This row is the fence: a worker's write that does not find its own token here
-- changes nothing. ends_at is an instant of this database's clock and of no other; it stands in no index, so that a
-- heartbeat rewrites the row within its page.
CREATE TABLE lease (
    job_id text COLLATE "C" PRIMARY KEY,
    operation text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    token text NOT NULL,
    worker_id text NOT NULL,
    ends_at bigint NOT NULL,
    available_at bigint NOT NULL,
    version integer NOT NULL,
    attempt integer NOT NULL CHECK (attempt >= 1),
    counted_attempts integer NOT NULL CHECK (counted_attempts >= 1),
    crashes integer NOT NULL,
    is_alone boolean NOT NULL,
    started_at bigint NOT NULL,
    attempt_started_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    progress_fraction double precision,
    progress_message text,
    cancel_requested boolean NOT NULL DEFAULT false,
    cancel_reason text
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
)
