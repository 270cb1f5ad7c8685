-- Who waits, and for how many jobs, follows from the ready ones, which are there already.
INSERT INTO turn (operation, tenant, vstart, is_waiting, waiting)
SELECT :operation, :tenant, :vstart, count(*) > 0, count(*) FROM ready WHERE operation = :operation AND tenant = :tenant
