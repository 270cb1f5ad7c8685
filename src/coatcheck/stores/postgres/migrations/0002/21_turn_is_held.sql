-- A turn in which no job may start leaves the order without being forgotten: its tenant waits, and is not eligible.
ALTER TABLE turn ADD COLUMN is_held boolean NOT NULL DEFAULT false CHECK (is_waiting OR NOT is_held)
