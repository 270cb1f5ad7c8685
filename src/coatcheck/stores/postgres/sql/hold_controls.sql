-- One change at a time, so that what is counted before it stays so.
SELECT value FROM meta WHERE name = 'controls_version' FOR UPDATE
