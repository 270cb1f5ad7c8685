SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'controls_version'
