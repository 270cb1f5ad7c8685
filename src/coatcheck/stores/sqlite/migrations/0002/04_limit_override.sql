-- Limits as set at run time. tenant: a name, '*' for each, '' for all together; operation: a name, or '' for all.
-- NULL means unlimited; where there is no row, settings and declarations hold.
CREATE TABLE limit_override (
    name TEXT NOT NULL,
    tenant TEXT NOT NULL,
    operation TEXT NOT NULL,
    value REAL CHECK (value >= 0),
    PRIMARY KEY (name, tenant, operation)
) WITHOUT ROWID, STRICT
