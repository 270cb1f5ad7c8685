SELECT count(*) FROM inbox
