SELECT seq, at, actor, origin, action, target, tenant, details FROM audit WHERE seq < :before ORDER BY seq DESC LIMIT :limit
