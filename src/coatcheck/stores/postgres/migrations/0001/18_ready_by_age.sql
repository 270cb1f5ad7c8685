-- For the queue limit, which holds for jobs that never started. Partial also so that no claim can be planned by it: with
-- statistics from a drained queue it would look cheaper than the order of turns, and be read as a whole.
CREATE INDEX ready_by_age ON ready (operation, available_at) WHERE attempt = 0
