-- Once only: a second redrive finds the link and follows it. A revoked tenant gets no new work.
UPDATE job SET redriven_as = :new_job_id, version = version + 1, updated_at = :now
WHERE id = :job_id AND tenant = :tenant AND status = 'failed' AND redriven_as IS NULL
    AND NOT EXISTS (SELECT 1 FROM tenant AS t WHERE t.name = :tenant AND t.revocation IS NOT NULL)
