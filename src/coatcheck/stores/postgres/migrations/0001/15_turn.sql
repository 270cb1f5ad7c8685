-- Whose turn it is: one row for each tenant with ready work in an operation; the lowest vstart is served next. A
-- tenant that was served and has nothing more stays, not waiting, until the others have caught up: coming back early
-- must not let it pass them again. There is no count of its jobs: it would be a row that every acceptance of every
-- process locks until its commit.
CREATE TABLE turn (
    operation text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    is_waiting boolean NOT NULL,
    vstart double precision NOT NULL,
    PRIMARY KEY (operation, tenant)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
)
