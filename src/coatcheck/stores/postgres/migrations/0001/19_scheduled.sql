-- Jobs that must wait for their time: delayed by their client, or by a backoff.
CREATE TABLE scheduled (
    job_id text COLLATE "C" PRIMARY KEY,
    available_at bigint NOT NULL,
    operation text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    version integer NOT NULL,
    attempt integer NOT NULL,
    counted_attempts integer NOT NULL,
    crashes integer NOT NULL,
    is_alone boolean NOT NULL,
    started_at bigint,
    updated_at bigint NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
)
