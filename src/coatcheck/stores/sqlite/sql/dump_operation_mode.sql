SELECT operation, mode FROM operation_mode ORDER BY operation
