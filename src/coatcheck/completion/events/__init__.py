"""Events: what happened to a job, as CloudEvents on a channel."""
