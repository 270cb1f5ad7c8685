-- Keys that this transaction has reserved itself.
DELETE FROM idempotency_key
WHERE (tenant, operation, key) IN (
VALUES (?, ?, ?)
)
