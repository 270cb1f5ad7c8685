-- Every turn was put among the waiting ones; these have no job to wait for.
UPDATE turn AS t SET is_waiting = false
WHERE NOT EXISTS (SELECT 1 FROM ready AS r WHERE r.operation = t.operation AND r.tenant = t.tenant)
