-- They stay at their level; the jobs that wait in them stay where they are.
UPDATE turn SET is_held = 1
WHERE is_waiting = 1 AND (operation, tenant) IN (
VALUES (?, ?)
)
