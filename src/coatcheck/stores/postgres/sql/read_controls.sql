-- In one statement, because each has its own snapshot.
SELECT
    (SELECT value::bigint FROM meta WHERE name = 'controls_version'),
    (
        SELECT coalesce(json_agg(json_build_object(
            'name', name, 'weight', weight, 'is_paused', is_paused, 'revocation', revocation,
            'by_operation', by_operation::json
        )), '[]')
        FROM tenant WHERE weight <> 1 OR is_paused OR revocation IS NOT NULL
    ),
    (SELECT coalesce(json_object_agg(operation, mode), '{}') FROM operation_mode),
    (
        SELECT coalesce(json_agg(json_build_object(
            'name', name, 'tenant', tenant, 'operation', operation, 'value', value
        )), '[]')
        FROM limit_override
    )
