SELECT count(*) FROM lease WHERE operation = :operation
