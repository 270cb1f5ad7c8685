SELECT value::bigint FROM meta WHERE name = 'controls_version'
