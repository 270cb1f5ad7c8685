SELECT seq, at, actor, origin, action, target, tenant, details
FROM audit WHERE tenant = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2
