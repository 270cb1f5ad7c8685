SELECT operation, mode FROM operation_mode
