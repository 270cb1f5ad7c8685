SELECT value::integer FROM meta WHERE name = 'schema'
