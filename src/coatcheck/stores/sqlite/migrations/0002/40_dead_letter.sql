-- Dead letters: failed jobs that nobody has redriven. One that is redriven leaves the index, so that redriving many
-- never steps over those that are done.
CREATE INDEX dead_letter ON job (id) WHERE dead_lettered_at IS NOT NULL AND redriven_as IS NULL
