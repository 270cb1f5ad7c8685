-- Effects belong to the chain: they go with its last job.
DELETE FROM effect AS e
WHERE e.chain_id = ANY ($1::text[])
    AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.id = e.chain_id)
    AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.chain_id = e.chain_id AND j.redrive_of IS NOT NULL)
