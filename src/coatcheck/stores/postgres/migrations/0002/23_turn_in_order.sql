CREATE INDEX turn_in_order ON turn (operation, vstart, tenant) WHERE is_waiting AND NOT is_held
