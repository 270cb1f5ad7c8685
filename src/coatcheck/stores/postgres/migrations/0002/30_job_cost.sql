-- What a job cost, in millionths of a unit of each kind: charged at its acceptance, in the window that began then, and
-- spent since. attempt and number name the last spend that is counted, so that a repeat of it is not counted again.
CREATE TABLE job_cost (
    job_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    charged bigint NOT NULL CHECK (charged >= 0),
    spent bigint NOT NULL CHECK (spent >= 0),
    attempt integer NOT NULL,
    number integer NOT NULL,
    window_ms bigint NOT NULL,
    window_at bigint NOT NULL,
    PRIMARY KEY (job_id, kind)
) WITH (autovacuum_vacuum_scale_factor = 0.05)
