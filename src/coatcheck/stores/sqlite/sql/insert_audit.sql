INSERT INTO audit (at, actor, origin, action, target, tenant, details)
VALUES (:at, :actor, :origin, :action, :target, :tenant, :details)
