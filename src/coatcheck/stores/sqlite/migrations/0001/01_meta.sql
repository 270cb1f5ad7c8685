-- What this file belongs to: the app's name, written when the file is made and compared at every start.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID, STRICT
