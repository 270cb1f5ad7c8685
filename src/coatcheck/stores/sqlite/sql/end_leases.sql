-- The token is the fence: whoever deletes this row has the right to write the outcome, and nobody else has.
DELETE FROM lease
WHERE (job_id, attempt, token) IN (
VALUES (?, ?, ?)
)
