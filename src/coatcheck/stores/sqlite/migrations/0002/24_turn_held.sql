CREATE INDEX turn_held ON turn (tenant, operation) WHERE is_held = 1
