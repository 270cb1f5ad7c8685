SELECT u.operation, (SELECT count(*) FROM lease AS l WHERE l.operation = u.operation)
FROM unnest($1::text[]) AS u (operation)
