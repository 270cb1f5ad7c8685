-- The right to relay the outbox: one row at most, held until an instant of this database's clock. A lock of a session
-- would be simpler, and would not survive a pooler that lends sessions for a transaction.
CREATE TABLE relay_turn (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    holder text NOT NULL,
    ends_at timestamptz NOT NULL
) WITH (fillfactor = 50)
