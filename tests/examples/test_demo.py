"""`make demo`, as a person runs it: a real server, real HTTP, the PDF at the end, and one sentence when it fails."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from bookshop import demo
from bookshop.desk import DemoFailed, Desk
from bookshop.local_server import ServerFailed, free_port, local_server
from bookshop.screen import Screen

ROOT = Path(__file__).resolve().parents[2]
PYTHON_PATH = os.pathsep.join((str(ROOT / "examples"), str(ROOT / "src")))
REFUSED_FLAGS = ("--workers", "0")


def desk(answer: Callable[[httpx.Request], httpx.Response]) -> Desk:
    client = httpx.Client(base_url="http://shop", transport=httpx.MockTransport(answer))
    return Desk(client, Screen(Console(file=io.StringIO())))


def test_the_demo_tells_the_whole_story(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bookshop.demo"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": PYTHON_PATH, "BOOKSHOP_TILL_PAUSE": "0.05"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "\x1b" not in done.stdout
    story = (
        "POST /reports",
        "202 Accepted",
        "location: /reports/job_",
        "retry-after: ",
        "Accept: text/event-stream",
        "Counted",
        "succeeded 100%",
        "Hamburg Altona",
        "Scarcest titles",
        "idempotent-replayed: true",
        "Prefer: wait=20",
        "200 OK",
        "out/stock-report.pdf",
    )
    places = [done.stdout.find(step) for step in story]
    assert -1 not in places, done.stdout
    assert places == sorted(places), done.stdout
    assert (tmp_path / "out" / "stock-report.pdf").read_bytes().startswith(b"%PDF-")


def test_a_server_that_does_not_start_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", PYTHON_PATH)
    monkeypatch.setattr(demo, "AT_ONCE", REFUSED_FLAGS)
    assert demo.main() == 1
    said = capsys.readouterr().out
    assert "The demo failed. The server stopped with exit code 2 before it was ready." in said
    assert "workers" in said.partition("The server's last words:")[2]


def test_no_server_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PYTHON_PATH)
    with (tmp_path / "log").open("wb") as log:
        with local_server(tmp_path, free_port(), log, demo.AT_ONCE) as server:
            assert httpx.get(f"{server.url}/livez").is_success
        assert server.process.returncode == 0
        with pytest.raises(ServerFailed), local_server(tmp_path, free_port(), log, REFUSED_FLAGS):
            pass


def test_an_answer_of_another_kind_is_told_with_its_reason() -> None:
    problem = {"status": 503, "detail": "The server is stopping."}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, json=problem, headers={"Content-Type": "application/problem+json"})

    with pytest.raises(DemoFailed, match=r"POST /reports answered 503 instead of 202: The server is stopping."):
        desk(answer).hand_in({"branch": "hamburg-altona"}, "key")


def test_a_stream_that_breaks_is_taken_up_again_after_its_last_event() -> None:
    job = {"status_url": "/reports/job_1", "status": "running", "done": False, "progress": None}
    versions = [job | {"version": 1}, job | {"version": 2}]
    final = job | {"version": 3, "status": "succeeded", "done": True}
    asked: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers.get("last-event-id"))
        told = versions if len(asked) == 1 else [final]
        return httpx.Response(200, text="".join(f"event: status\ndata: {json.dumps(job)}\n\n" for job in told))

    assert desk(answer).follow(job | {"version": 0}) == final
    assert asked == [None, "2"]


def test_a_job_that_fails_fails_the_demo() -> None:
    failed = {"version": 2, "status": "failed", "done": True, "progress": None, "error": {"detail": "No such branch."}}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=f"data: {json.dumps(failed)}\n\n")

    with pytest.raises(DemoFailed, match=r"The job failed: No such branch\."):
        desk(answer).follow({"status_url": "/reports/job_1", "done": False, "version": 0})
