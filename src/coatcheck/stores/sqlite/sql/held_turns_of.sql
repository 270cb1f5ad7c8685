SELECT json_group_array(json_array(t.operation, t.tenant))
FROM (
VALUES (?)
) AS asked
CROSS JOIN turn AS t ON t.is_held = 1 AND t.tenant = asked.column1
