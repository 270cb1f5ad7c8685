INSERT INTO operation_mode AS m (operation, mode) VALUES ($1, $2)
ON CONFLICT (operation) DO UPDATE SET mode = excluded.mode WHERE m.mode <> excluded.mode
