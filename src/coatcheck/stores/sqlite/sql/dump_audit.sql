SELECT seq, at, actor, origin, action, target, tenant, details FROM audit ORDER BY seq
