-- Held: it is not restored while its jobs are ended, and one process at a time ends them.
SELECT revocation, by_operation, revoked_at, revocation_done_at FROM tenant
WHERE name = $1 AND revocation IS NOT NULL
FOR NO KEY UPDATE SKIP LOCKED
