-- A newcomer starts level with the tenant that is next, and one that comes back not before its own last turn: nobody
-- is served twice at one level while somebody else waits there. Where all who wait are held, the last of them left the
-- order at the highest level.
INSERT INTO turn (operation, tenant, is_waiting, vstart, waiting)
VALUES (
    :operation,
    :tenant,
    1,
    coalesce(
        (SELECT min(vstart) FROM turn WHERE operation = :operation AND is_waiting = 1 AND is_held = 0),
        (SELECT max(vstart) FROM turn WHERE operation = :operation AND is_waiting = 1 AND is_held = 1),
        0.0
    ),
    :count
)
ON CONFLICT (operation, tenant) DO UPDATE SET is_waiting = 1, waiting = excluded.waiting, vstart = max(vstart, excluded.vstart)
