-- Who waits for how many jobs, with the first and the last in line: a few seeks for each tenant.
SELECT
    t.operation,
    t.tenant,
    t.waiting,
    (
        SELECT r.job_id FROM ready AS r WHERE r.operation = t.operation AND r.tenant = t.tenant
        ORDER BY r.priority, r.job_id LIMIT 1
    ),
    (
        SELECT r.job_id FROM ready AS r WHERE r.operation = t.operation AND r.tenant = t.tenant
        ORDER BY r.priority DESC, r.job_id DESC LIMIT 1
    ),
    (SELECT max(r.priority) FROM ready AS r WHERE r.operation = t.operation AND r.tenant = t.tenant)
FROM turn AS t
WHERE t.is_waiting = 1
LIMIT :limit
