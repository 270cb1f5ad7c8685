INSERT INTO effect (chain_id, name, value, recorded_at)
VALUES (:chain_id, :name, :value, :recorded_at)
