-- For the level of a newcomer where everybody who waits is held.
CREATE INDEX turn_held_in_order ON turn (operation, vstart) WHERE is_held
