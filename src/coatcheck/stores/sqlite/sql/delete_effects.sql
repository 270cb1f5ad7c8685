-- Effects belong to the chain: they go with its last job.
DELETE FROM effect
WHERE chain_id = :chain_id
    AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = :chain_id AND j.id <> :job_id)
    AND NOT EXISTS (
        SELECT 1 FROM job AS j WHERE j.chain_id = :chain_id AND j.redrive_of IS NOT NULL AND j.id <> :job_id
    )
