-- One row for each attempt that ended; the one that runs is the lease.
CREATE TABLE attempt (
    job_id text COLLATE "C" NOT NULL,
    number integer NOT NULL CHECK (number >= 1),
    started_at bigint NOT NULL,
    finished_at bigint NOT NULL,
    outcome text NOT NULL,
    error_category text,
    error_detail text,
    error_code text,
    error_operator_detail text,
    PRIMARY KEY (job_id, number)
) WITH (autovacuum_vacuum_scale_factor = 0.05)
