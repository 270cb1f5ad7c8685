"""What the soak runs: small jobs of every ending, kept for a time that the soak sets."""

import os
from typing import Any

from coatcheck import App, Backoff, Job, JobError
from coatcheck.declaration import RetentionOptions

KEPT_S = float(os.environ.get("TORTURE_KEPT_S", "60"))
RETENTION: RetentionOptions = {
    "succeeded": KEPT_S,
    "failed": KEPT_S,
    "cancelled": KEPT_S,
    "result": KEPT_S / 2,
    "tombstone": KEPT_S,
}

app = App("soak")


@app.operation("work", max_attempts=3, backoff=Backoff(0.1, 2.0, 1.0), retention=RETENTION, key_window=KEPT_S)
async def work(request: dict[str, Any], job: Job) -> Any:
    """Ends as its number says; a few fail at first or for good."""
    number = int(request["number"])
    if number % 10 == 7 and job.attempt == 1:
        raise RuntimeError
    if number % 25 == 13:
        raise JobError("handler_error", "It went wrong for good.")
    job.progress(0.5)
    return {"number": number, "effect": await job.effect("once", lambda: number), "text": "x" * (number % 2000)}
