"""A client that a careful user of the contract would write, small and without hidden retries."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from coatcheck.testing.waiting import wait_until
from harness.sse import Event, read_events

JsonObject = dict[str, Any]
FINAL = ("succeeded", "failed", "cancelled")
PATIENCE_S = 30.0


class Client:
    """Talks to one server over kept connections."""

    def __init__(self, url: str, **options: Any) -> None:
        self.http = httpx.Client(base_url=url, timeout=PATIENCE_S, **options)

    def close(self) -> None:
        self.http.close()

    def post(self, operation: str, body: Any = None, **headers: str) -> httpx.Response:
        """Hand in work. `operation` is a name or a path; `Job_Priority="1"` becomes the header Job-Priority."""
        return self.http.post(_path(operation), json={} if body is None else body, headers=_headers(headers))

    def post_bytes(self, operation: str, content: bytes, **headers: str) -> httpx.Response:
        """Hand in a body as it stands, as JSON unless a header says otherwise."""
        given = {"Content-Type": "application/json"} | _headers(headers)
        return self.http.post(_path(operation), content=content, headers=given)

    def submit(self, operation: str, body: Any = None, **headers: str) -> JsonObject:
        """Hand in work that must be accepted; returns the job."""
        answer = self.post(operation, body, **headers)
        assert answer.status_code == 202, f"{answer.status_code} {answer.text}"
        return as_object(answer)

    def get(self, url: str, **headers: str) -> httpx.Response:
        return self.http.get(url, headers=_headers(headers))

    def job(self, job: JsonObject) -> JsonObject:
        """The job as it stands now."""
        answer = self.get(job["status_url"])
        assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
        return as_object(answer)

    def final(self, job: JsonObject, timeout_s: float = PATIENCE_S) -> JsonObject:
        """The job once it has ended."""
        return self.until(job, lambda now: bool(now["done"]), "the job to end", timeout_s)

    def until(self, job: JsonObject, holds: Any, what: str, timeout_s: float = PATIENCE_S) -> JsonObject:
        """The job once a predicate of it holds."""
        seen: list[JsonObject] = [job]

        def look() -> bool:
            seen.append(self.job(job))
            return bool(holds(seen[-1]))

        try:
            wait_until(look, what, timeout_s)
        except TimeoutError as error:
            raise AssertionError(f"{error}; last seen: {seen[-1]}") from error
        return seen[-1]

    def running(self, job: JsonObject) -> JsonObject:
        """The job once it runs."""
        return self.until(job, lambda now: now["status"] == "running", "the job to run")

    def cancel(self, job: JsonObject, reason: str | None = None) -> httpx.Response:
        if reason is None:
            return self.http.post(job["cancel_url"])
        return self.http.post(job["cancel_url"], json={"reason": reason})

    def erase(self, job: JsonObject) -> httpx.Response:
        return self.http.delete(job["status_url"])

    def attempts(self, job: JsonObject) -> list[JsonObject]:
        answer = self.get(job["status_url"] + "/attempts")
        assert answer.status_code == 200, answer.text
        listed: list[JsonObject] = answer.json()["attempts"]
        return listed

    @contextmanager
    def stream(self, job: JsonObject, **headers: str) -> Iterator[Iterator[Event]]:
        """The job's live stream, as its events and comments."""
        given = {"Accept": "text/event-stream"} | _headers(headers)
        with self.http.stream("GET", job["status_url"], headers=given) as answer:
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield read_events(answer.iter_lines())


def as_object(answer: httpx.Response) -> JsonObject:
    """The JSON object of an answer."""
    body = answer.json()
    assert isinstance(body, dict), body
    return body


def problem(answer: httpx.Response, status: int, code: str) -> JsonObject:
    """The problem of a refusal, whose form is checked wherever one is met."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    assert answer.headers["content-type"].partition(";")[0] == "application/problem+json"
    body = as_object(answer)
    assert body["code"] == code, body
    assert body["status"] == status
    assert body["type"].endswith(f"/problems/{code}"), body["type"]
    assert body["title"]
    assert body["detail"]
    assert body["correlation_id"] == answer.headers["x-correlation-id"]
    return body


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in given.items()}


def _path(operation: str) -> str:
    return operation if operation.startswith("/") else f"/v1/{operation}"
