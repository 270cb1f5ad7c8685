INSERT INTO operation_mode (operation, mode) VALUES (:operation, :mode)
ON CONFLICT (operation) DO UPDATE SET mode = excluded.mode WHERE mode <> excluded.mode
