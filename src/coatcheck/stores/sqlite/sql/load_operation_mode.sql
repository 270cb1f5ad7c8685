INSERT INTO operation_mode (operation, mode)
VALUES (:operation, :mode)
