-- How many of a tenant's jobs run, in an operation or ('') in all of them.
SELECT json_group_array(json_array(
    column1,
    column2,
    (SELECT count(*) FROM lease AS l WHERE l.tenant = column1 AND (column2 = '' OR l.operation = column2))
))
FROM (
VALUES (?, ?)
) AS asked
WHERE column1 IS NOT NULL
