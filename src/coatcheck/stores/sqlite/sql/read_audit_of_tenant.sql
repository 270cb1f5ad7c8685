SELECT seq, at, actor, origin, action, target, tenant, details
FROM audit WHERE tenant = :tenant AND seq < :before ORDER BY seq DESC LIMIT :limit
