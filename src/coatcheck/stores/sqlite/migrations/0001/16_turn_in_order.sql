CREATE INDEX turn_in_order ON turn (operation, vstart, tenant)
