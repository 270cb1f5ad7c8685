-- What is given as NULL stays.
UPDATE tenant SET weight = coalesce(:weight, weight), is_paused = coalesce(:is_paused, is_paused)
WHERE name = :name AND (weight <> :weight OR is_paused <> :is_paused)
