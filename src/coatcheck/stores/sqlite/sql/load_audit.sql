INSERT INTO audit (seq, at, actor, origin, action, target, tenant, details)
VALUES (:seq, :at, :actor, :origin, :action, :target, :tenant, :details)
