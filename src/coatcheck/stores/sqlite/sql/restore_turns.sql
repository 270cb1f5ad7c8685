-- One that comes back is level with the tenant that is next, as a newcomer is, and not before its own last turn.
UPDATE turn SET is_held = 0, vstart = max(vstart, coalesce(
    (SELECT min(t.vstart) FROM turn AS t WHERE t.operation = turn.operation AND t.is_waiting = 1 AND t.is_held = 0),
    (SELECT max(t.vstart) FROM turn AS t WHERE t.operation = turn.operation AND t.is_waiting = 1 AND t.is_held = 1)
))
WHERE is_held = 1 AND (operation, tenant) IN (
VALUES (?, ?)
)
