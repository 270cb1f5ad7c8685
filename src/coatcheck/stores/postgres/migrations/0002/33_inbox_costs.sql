-- What the job costs, as JSON: by kind, in millionths of a unit. It is charged when the job moves on to the queue.
ALTER TABLE inbox ADD COLUMN costs text
