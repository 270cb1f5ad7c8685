-- Limits as set at run time. tenant: a name, '*' for each, '' for all together; operation: a name, or '' for all.
-- NULL means unlimited; where there is no row, settings and declarations hold.
CREATE TABLE limit_override (
    name text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    value double precision CHECK (value >= 0),
    PRIMARY KEY (name, tenant, operation)
)
