-- The count of waiting jobs is not in it, so that one more of a waiting tenant leaves this index alone. Those that are
-- held stand apart from those that are served.
CREATE INDEX turn_in_order ON turn (operation, is_waiting, is_held, vstart, tenant)
