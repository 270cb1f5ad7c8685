SELECT chain_id, name, value, recorded_at FROM effect ORDER BY chain_id, name
