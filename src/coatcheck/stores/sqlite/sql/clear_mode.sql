-- Open is how an operation is where nothing says otherwise.
DELETE FROM operation_mode WHERE operation = :operation
