-- A tenant without work is remembered only while its last turn still lies ahead of somebody who waits and is not held.
DELETE FROM turn
WHERE operation = :operation AND is_waiting = 0 AND is_held = 0
    AND vstart <= coalesce(
        (SELECT min(vstart) FROM turn WHERE operation = :operation AND is_waiting = 1 AND is_held = 0), 9e999
    )
