-- Events still to be told. A number is never given twice, and a job's later event has the higher number: who writes
-- it has seen the earlier one committed.
CREATE TABLE outbox (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type text NOT NULL,
    job_id text NOT NULL,
    tenant text NOT NULL,
    operation text NOT NULL,
    version integer NOT NULL,
    occurred_at bigint NOT NULL,
    correlation_id text NOT NULL,
    data bytea NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
)
