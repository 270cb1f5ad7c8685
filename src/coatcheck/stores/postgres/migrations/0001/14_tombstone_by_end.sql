CREATE INDEX tombstone_by_end ON tombstone (kept_until)
