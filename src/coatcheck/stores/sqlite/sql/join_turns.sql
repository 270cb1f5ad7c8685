-- A newcomer starts level with the tenant that is next: it neither jumps ahead of the queue nor pays for the past.
INSERT INTO turn (operation, tenant, vstart, waiting)
VALUES (
    :operation,
    :tenant,
    coalesce((SELECT min(vstart) FROM turn WHERE operation = :operation), 0.0),
    1
)
ON CONFLICT (operation, tenant) DO UPDATE SET waiting = waiting + 1
