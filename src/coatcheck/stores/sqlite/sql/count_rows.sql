-- In the order of the dump's kinds.
SELECT
    (SELECT count(*) FROM job),
    (SELECT count(*) FROM payload),
    (SELECT count(*) FROM result),
    (SELECT count(*) FROM attempt),
    (SELECT count(*) FROM effect),
    (SELECT count(*) FROM idempotency_key),
    (SELECT count(*) FROM tombstone),
    (SELECT count(*) FROM ready),
    (SELECT count(*) FROM turn),
    (SELECT count(*) FROM scheduled),
    (SELECT count(*) FROM lease),
    (SELECT count(*) FROM deadline),
    (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM job_cost),
    (SELECT count(*) FROM spending)
