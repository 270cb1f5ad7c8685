SELECT 1 FROM tenant WHERE name = :tenant AND restored_at > :since
