UPDATE meta SET value = value::bigint + 1 WHERE name = 'controls_version'
