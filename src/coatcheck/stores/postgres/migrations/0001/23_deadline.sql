-- One row for each open job that has a deadline; none for the others.
CREATE TABLE deadline (
    deadline_at bigint NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (deadline_at, job_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)
