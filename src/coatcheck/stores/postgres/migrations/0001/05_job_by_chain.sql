CREATE INDEX job_by_chain ON job (chain_id) WHERE redrive_of IS NOT NULL
