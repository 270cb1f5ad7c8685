-- Jobs that may start now, in the order in which their tenant wants them. Each row lives once and dies soon: what
-- keeps this table fast is that its dead rows go soon as well.
CREATE TABLE ready (
    operation text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    available_at bigint NOT NULL,
    version integer NOT NULL,
    attempt integer NOT NULL,
    counted_attempts integer NOT NULL,
    crashes integer NOT NULL,
    is_alone boolean NOT NULL,
    started_at bigint,
    updated_at bigint NOT NULL,
    -- With it the oldest of a queue can be told from the index alone.
    PRIMARY KEY (operation, tenant, priority, job_id) INCLUDE (available_at)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000,
    autovacuum_vacuum_cost_delay = 0
)
