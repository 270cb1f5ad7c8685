INSERT INTO meta (name, value)
VALUES ('commits', '1')
-- A number that only rises: a file with a smaller one than was acknowledged has lost commits.
ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1
RETURNING CAST(value AS INTEGER)
