-- What is given as NULL stays.
UPDATE tenant SET weight = coalesce($2, weight), is_paused = coalesce($3, is_paused)
WHERE name = $1 AND (weight <> $2 OR is_paused <> $3)
