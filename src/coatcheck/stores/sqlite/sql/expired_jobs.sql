SELECT id FROM job WHERE expires_at IS NOT NULL AND expires_at <= :now ORDER BY expires_at LIMIT :limit
