-- What operators did, written in the commit that did it. AUTOINCREMENT: a number is never given twice.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    tenant TEXT,
    details TEXT NOT NULL
) STRICT
