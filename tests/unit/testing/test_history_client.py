"""The client's lines say what it asked for and how that ended, and nothing it cannot know."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coatcheck.testing.checker_evidence import DUMP, Evidence, gather, read_events
from coatcheck.testing.history import HistoryWriter, Mark, read_history
from coatcheck.testing.history_client import Ask, HistoryClient, NoReply, Reply, Wanted, mark_of
from coatcheck.testing.history_runs import RunLog

JOB = {"id": "job_1", "status": "queued", "version": 1, "status_url": "/v1/reports/job_1", "redrive_of": None}


class Site:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[Ask] = []
        self.answers: list[Reply | None] = []

    def send(self, ask: Ask) -> Reply:
        self.asked.append(ask)
        answer = self.answers.pop(0)
        if answer is None:
            raise NoReply("reset")
        return answer

    def will(self, status: int, body: object = None) -> None:
        self.answers.append(Reply(status, {}, b"" if body is None else json.dumps(body).encode()))

    def client(self, who: str = "client") -> HistoryClient:
        return HistoryClient(self.send, HistoryWriter(self.path, who))

    @property
    def evidence(self) -> Evidence:
        return gather([self.path])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "history.jsonl")


def test_an_accepted_submission(site: Site) -> None:
    site.will(202, JOB)
    reply = site.client().submit(Wanted("work", {"n": 1}, "key", {"Job-Priority": "1"}))
    assert reply is not None
    assert reply.json == JOB
    (ask,) = site.asked
    assert (ask.method, ask.path, ask.body) == ("POST", "/v1/work", b'{"n": 1}')
    assert ask.headers["Idempotency-Key"] == "key"
    assert ask.headers["Job-Priority"] == "1"
    (call,) = site.evidence.calls
    assert call.correlation_id == ask.headers["X-Correlation-ID"]
    assert (call.mark, call.http_status, call.key, call.operation) == (Mark.OK, 202, "key", "work")
    assert call.jobs == [JOB]
    assert call.ended_us is not None
    assert call.began_us <= call.ended_us


def test_no_answer_is_unknown(site: Site) -> None:
    site.answers.append(None)
    assert site.client().read(JOB) is None
    (call,) = site.evidence.calls
    assert (call.mark, call.http_status, call.job_id) == (Mark.UNKNOWN, None, "job_1")


def test_a_client_that_was_killed_leaves_an_unknown_call(site: Site) -> None:
    site.will(202, JOB)
    site.client().submit(Wanted("work"))
    begun, *_ = site.path.read_bytes().splitlines(keepends=True)
    site.path.write_bytes(begun + b'{"at_us": 1, "who"')
    (call,) = site.evidence.calls
    assert (call.mark, call.ended_us) == (Mark.UNKNOWN, None)


@pytest.mark.parametrize(
    ("status", "mark"),
    [(200, Mark.OK), (304, Mark.OK), (404, Mark.FAIL), (503, Mark.FAIL), (500, Mark.UNKNOWN), (504, Mark.UNKNOWN)],
)
def test_what_an_answer_means(status: int, mark: Mark) -> None:
    assert mark_of(status) is mark


def test_a_problem_is_told_by_its_code(site: Site) -> None:
    site.will(409, {"code": "job-already-finished", "status": 409})
    site.client().cancel(JOB)
    (call,) = site.evidence.calls
    assert (call.mark, call.code, call.jobs) == (Mark.FAIL, "job-already-finished", ())


def test_lists_are_read_to_their_end(site: Site) -> None:
    other = {**JOB, "id": "job_2"}
    site.will(200, {"jobs": [JOB], "next_cursor": "abc"})
    site.will(200, {"jobs": [other], "next_cursor": None})
    assert site.client().list_jobs("queued") == [JOB, other]
    assert [ask.path for ask in site.asked] == [
        "/v1/jobs?limit=200&status=queued",
        "/v1/jobs?limit=200&status=queued&cursor=abc",
    ]
    site.will(503)
    assert site.client("other").list_jobs() == [], "a page that does not come ends it"


def test_a_dump_looks_for_every_known_job(site: Site) -> None:
    listed, lost = {**JOB, "correlation_id": "c"}, {**JOB, "id": "job_2"}
    site.will(200, {"jobs": [listed], "next_cursor": None})
    for _ in range(5):
        site.will(200, {"jobs": [], "next_cursor": None})
    site.will(410, {"code": "job-expired"})
    site.will(200, listed)
    site.will(200, {"attempts": [{"number": 1}]})
    site.client(DUMP).dump([lost], {"leases": 2})
    evidence = site.evidence
    assert evidence.final_jobs == {"job_1": listed}
    assert evidence.final_reads["job_2"].http_status == 410
    assert evidence.final_attempts == {"job_1": [{"number": 1}]}
    assert evidence.final_lists[""] == [listed]
    assert evidence.leftovers == {"leases": 2}


def test_a_dump_asks_again_until_it_is_answered(site: Site) -> None:
    site.will(503)
    for _ in range(6):
        site.will(200, {"jobs": [], "next_cursor": None})
    site.answers.append(None)
    site.will(503)
    site.will(410, {"code": "job-expired"})
    site.client(DUMP).dump([JOB])
    assert site.evidence.final_reads["job_1"].http_status == 410
    assert [ask.path for ask in site.asked][-3:] == [JOB["status_url"]] * 3


@pytest.mark.parametrize(
    ("end", "mark"),
    [(RunLog.returned, Mark.OK), (lambda run: run.raised("KeyError"), Mark.FAIL), (lambda run: None, Mark.UNKNOWN)],
    ids=["returned", "raised", "killed"],
)
def test_the_lines_of_a_run(site: Site, end: Callable[[RunLog], None], mark: Mark) -> None:
    run = RunLog(site.path, "job_1", 2)
    run.asks_effect("mail")
    run.has_effect("mail", {"b": 1, "a": 2})
    end(run)
    (told,) = site.evidence.runs
    assert (told.job_id, told.attempt, told.mark) == ("job_1", 2, mark)
    (effect,) = site.evidence.effects
    assert (effect.attempt, effect.name, effect.value) == (2, "mail", '{"a": 2, "b": 1}')
    assert effect.began_us >= told.began_us
    assert all(entry.who.startswith("handler-") for entry in read_history([site.path]))


def test_events_are_read_up_to_a_half_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert read_events(path) == []
    path.write_bytes(b'{"id": "a:1"}\n{"id": "a')
    assert read_events(path) == [{"id": "a:1"}]
