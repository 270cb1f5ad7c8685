-- The count of waiting jobs is not in it, so that one more of a waiting tenant leaves this index alone.
CREATE INDEX turn_in_order ON turn (operation, is_waiting, vstart, tenant)
