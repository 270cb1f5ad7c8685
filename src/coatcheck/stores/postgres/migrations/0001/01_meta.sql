-- What this schema belongs to: the app's name, written when it is made and compared at every start.
CREATE TABLE meta (
    name text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
)
