SELECT min(available_at) FROM scheduled
