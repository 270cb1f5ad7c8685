"""Cancelling: before the start, of what is long finished, and of what has grown large."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coatcheck.core import limits
from contract.conftest import Connect, Serve
from harness.http import Client
from harness.server import Server
from harness.stage import Stage

from .inside import look_inside
from .scale import scaled
from .shop import IMPORT_GATE


def test_bb_049_a_cancel_between_claim_and_start_means_it_does_not_start(
    serve: Serve, connect: Connect, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is claimed and waits for its process, which takes long to start."""
    gate = tmp_path / "gate"
    monkeypatch.setenv(IMPORT_GATE, str(gate))
    client = connect(serve(app_ref="bugbank.shop:app"))
    gate.touch()
    try:
        job = client.submit("alone", stage.task("return"))
        client.running(job)
        assert client.cancel(job).status_code in (200, 202)
        assert client.final(job, 15)["status"] == "cancelled"
    finally:
        gate.unlink()
    assert client.final(client.submit("alone", {}))["status"] == "succeeded", "its process takes other work"
    assert stage.starts == []
    assert client.job(job)["status"] == "cancelled"


def test_bb_054_cancelling_what_is_finished_disturbs_nobody(client: Client, stage: Stage) -> None:
    count = scaled(100, 1000)
    with ThreadPoolExecutor(8) as pool:
        finished = list(pool.map(lambda number: client.submit("anything", number), range(count)))
        finished = list(pool.map(client.final, finished))
        running = list(pool.map(lambda number: client.submit("anything", number), range(count)))
        answers = list(pool.map(client.cancel, finished))
        ended = list(pool.map(client.final, running))
    assert {answer.status_code for answer in answers} == {409}
    assert {job["status"] for job in ended} == {"succeeded"}
    assert [client.job(job) for job in finished[:20]] == finished[:20]
    assert client.final(client.submit("tasks", stage.task("return")), 10)["status"] == "succeeded"


def test_bb_055_a_job_with_the_largest_texts_can_be_cancelled(client: Client, server: Server) -> None:
    """A payload of nearly a mebibyte, and attempts that failed with texts of ten megabytes."""
    body = {"plan": ["dirty", "later:3600"], "value": "x" * (limits.PAYLOAD_BYTES_MAX - 200)}
    job = client.submit("tasks", body)
    client.until(job, lambda now: now["status"] == "queued" and now["attempt"] == 2, "two attempts to be over")
    answer = client.cancel(job, "é" * limits.CANCEL_REASON_CHARS_MAX)
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    errors = [attempt["error"] for attempt in client.attempts(job)]
    assert all(len(error["detail"]) <= limits.ERROR_DETAIL_CHARS_MAX for error in errors)
    query = "SELECT max(length(error_operator_detail)) FROM attempt WHERE job_id = ?"
    [(longest,)] = look_inside(server.store, query, job["id"])
    assert 1_000 < longest <= limits.OPERATOR_DETAIL_CHARS_MAX
