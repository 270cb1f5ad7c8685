DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at <= :now ORDER BY at LIMIT :limit)
