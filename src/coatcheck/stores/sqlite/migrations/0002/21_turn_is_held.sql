-- A turn in which no job may start leaves the order without being forgotten: its tenant waits, and is not eligible.
ALTER TABLE turn ADD COLUMN is_held INTEGER NOT NULL DEFAULT 0 CHECK (is_held IN (0, 1) AND is_held <= is_waiting)
