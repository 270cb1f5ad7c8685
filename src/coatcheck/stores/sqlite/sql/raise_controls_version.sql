UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE name = 'controls_version'
