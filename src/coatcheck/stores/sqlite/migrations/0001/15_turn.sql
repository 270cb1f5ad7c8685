-- Whose turn it is: one row for each tenant with ready work in an operation; the lowest vstart is served next. A
-- tenant that was served and has nothing more stays, with is_waiting = 0, until the others have caught up: coming back
-- early must not let it pass them again.
CREATE TABLE turn (
    operation TEXT NOT NULL,
    tenant TEXT NOT NULL,
    is_waiting INTEGER NOT NULL,
    vstart REAL NOT NULL,
    waiting INTEGER NOT NULL CHECK (waiting >= 0),
    PRIMARY KEY (operation, tenant),
    CHECK (is_waiting = (waiting > 0))
) WITHOUT ROWID, STRICT
