"""Jobs in every state of their life, for requests that need one to exist."""

from typing import Any

from harness.http import Client

LATER = "3600"
BODIES: dict[str, Any] = {
    "/shop/reports": {"branches": [{"name": "north", "opened": "2026-03-14"}]},
    "/v1/anything": [1, {"two": None}],
    "/v1/files": "text",
    "/v1/either": True,
    "/v1/bounded": {"a": "b"},
    "/v1/failing": {"name": "west"},
    "/v1/endless": 1,
}


def prepare_jobs(client: Client) -> dict[str, list[str]]:
    """The ids of an ended, a waiting, a cancelled and an erased job of each operation, by the operation's path.

    The ended job has run as its operation does: to a result, a file, a failure, or not to its end yet.
    """
    submitted = {path: [_submit(client, path, key) for key in ("ended", "waiting", "cancelled")] for path in BODIES}
    jobs: dict[str, list[str]] = {}
    for path, (ended, waiting, cancelled) in submitted.items():
        client.cancel(cancelled, "prepared")
        erased = _submit(client, path, "erased")
        client.cancel(erased)
        client.erase(erased)
        if path != "/v1/endless":
            client.final(ended)
        jobs[path] = [job["id"] for job in (ended, waiting, cancelled, erased)]
    return jobs


def _submit(client: Client, path: str, key: str) -> Any:
    start_after = {} if key == "ended" else {"Job_Start_After": LATER}
    deadline = {"Job_Deadline": "3599"} if path == "/v1/bounded" and key != "ended" else {}
    if deadline:
        start_after = {"Job_Start_After": "3000"}
    return client.submit(path, BODIES[path], Idempotency_Key=f"prepared-{key}", **start_after, **deadline)
