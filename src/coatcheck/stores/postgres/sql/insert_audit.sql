INSERT INTO audit (at, actor, origin, action, target, tenant, details)
VALUES ($1, $2, $3, $4, $5, $6, $7)
