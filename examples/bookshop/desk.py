"""A customer of the bookshop's API: hands in work, follows it, and collects what comes of it."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

from bookshop.screen import Screen

Job = dict[str, Any]
EVENTS = {"Accept": "text/event-stream"}
RECONNECTS_MAX = 5


class DemoFailed(Exception):
    """The server answered something else than it should; the message says what in one sentence."""


class Desk:
    """Talks to the server and shows what is said."""

    def __init__(self, client: httpx.Client, screen: Screen) -> None:
        self._client = client
        self._screen = screen

    def hand_in(self, work: dict[str, str], key: str) -> Job:
        """Hand in a stock report; the job as the 202 has it."""
        answer = self._post(work, {"Idempotency-Key": key}, 202)
        self._screen.show_answer(answer)
        return _job(answer)

    def hand_in_again(self, work: dict[str, str], key: str, job: Job) -> None:
        """Hand in what became `job` once more, and see that no second job comes of it."""
        answer = self._post(work, {"Idempotency-Key": key}, 202)
        self._screen.show_answer(answer, only=("location", "idempotent-replayed"))
        if _job(answer)["id"] != job["id"]:
            raise DemoFailed("The same key and work became a second job.")

    def hand_in_and_wait(self, work: dict[str, str]) -> Job:
        """Hand in a stock report and hold the line until it is done."""
        answer = self._post(work, {"Prefer": "wait=20"}, 200, 202)
        self._screen.show_answer(answer, only=("location", "preference-applied", "sunset"))
        job = _job(answer)
        return _succeeded(job) if job["done"] else self.follow(job)

    def follow(self, job: Job) -> Job:
        """Show the job's progress until it is done, and return it as it is then."""
        self._screen.show_request("GET", job["status_url"], EVENTS)
        with self._screen.progress() as show:
            latest = job
            for latest in self._events(job):
                show(latest)
        return _succeeded(latest)

    def result_of(self, job: Job) -> httpx.Response:
        """Collect the result of a job that succeeded."""
        self._screen.show_request("GET", job["result_url"], {})
        return _expect(self._client.get(job["result_url"]), 200)

    def _post(self, work: dict[str, str], headers: dict[str, str], *statuses: int) -> httpx.Response:
        self._screen.show_request("POST", "/reports", {"Content-Type": "application/json"} | headers, work)
        return _expect(self._client.post("/reports", json=work, headers=headers), *statuses)

    def _events(self, job: Job) -> Iterator[Job]:
        """Every version of the job that the server tells of, up to the last; over several connections if one breaks."""
        headers = dict(EVENTS)
        for _ in range(RECONNECTS_MAX):
            with self._client.stream("GET", job["status_url"], headers=headers) as stream:
                if stream.status_code != 200:
                    stream.read()
                for line in _expect(stream, 200).iter_lines():
                    if line.startswith("data:"):
                        job = json.loads(line.removeprefix("data:"))
                        yield job
            if job["done"]:
                return
            headers["Last-Event-ID"] = str(job["version"])
        raise DemoFailed("The stream of the job ended again and again before the job was done.")


def _expect(answer: httpx.Response, *statuses: int) -> httpx.Response:
    if answer.status_code in statuses:
        return answer
    wanted = " or ".join(str(status) for status in statuses)
    request = answer.request
    said = "" if answer.headers.get("content-type") != "application/problem+json" else f": {answer.json()['detail']}"
    raise DemoFailed(f"{request.method} {request.url.path} answered {answer.status_code} instead of {wanted}{said}")


def _job(answer: httpx.Response) -> Job:
    job: Job = answer.json()
    return job


def _succeeded(job: Job) -> Job:
    if job["status"] != "succeeded":
        raise DemoFailed(f"The job {job['status']}: {(job['error'] or {}).get('detail', 'no reason given')}")
    return job
