-- Whose turn it is: one row for each tenant with ready work in an operation. The lowest vstart is served next.
CREATE TABLE turn (
    operation TEXT NOT NULL,
    tenant TEXT NOT NULL,
    vstart REAL NOT NULL,
    waiting INTEGER NOT NULL CHECK (waiting >= 0),
    PRIMARY KEY (operation, tenant)
) WITHOUT ROWID, STRICT
