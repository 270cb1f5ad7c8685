DELETE FROM outbox WHERE seq = :seq
