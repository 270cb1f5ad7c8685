-- Operations that are not simply open.
CREATE TABLE operation_mode (
    operation text COLLATE "C" PRIMARY KEY,
    mode text NOT NULL CHECK (mode IN ('paused', 'draining'))
)
