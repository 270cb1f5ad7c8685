SELECT 1 FROM tenant WHERE name = $1 AND restored_at > $2
