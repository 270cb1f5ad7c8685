-- Who waits, and for how many jobs, follows from the ready ones, which are there already.
INSERT INTO turn (operation, tenant, vstart, is_waiting, waiting)
SELECT ?1, ?2, ?3, count(*) > 0, count(*) FROM ready WHERE operation = ?1 AND tenant = ?2
