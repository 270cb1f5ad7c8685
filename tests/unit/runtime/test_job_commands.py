"""Commands about jobs, dead letters and revocations: what they print and what they refuse."""

import asyncio
import io
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest
from rich.console import Console
from test_operator_commands import Shell

from coatcheck.cli import printing
from coatcheck.cli.printing import shown, shown_text
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import JobRecord
from coatcheck.core.outcome import Failed
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.conformance.world import World, cancel, job_in
from harness.sqlite_factory import SqliteFactory

T = TypeVar("T")
CSI = "\x9b31m"
HOSTILE = f"\x1b]0;owned\x07\x1b[2J{CSI}\u202egnp.exe"


class Shop:
    """A store with jobs in it, as workers and clients left it a moment ago."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def do(self, act: Callable[[World], Awaitable[T]]) -> T:
        """Do something to the store itself."""

        async def run() -> T:
            world = World(SqliteFactory(self._path), events=False)
            world.clock = ManualClock(time.time_ns() // 1_000_000 - 60_000)
            await world.reopen()
            try:
                return await act(world)
            finally:
                await world.close()

        return asyncio.run(run())

    def fail(self, count: int = 1, **changes: object) -> list[str]:
        """The ids of new failed jobs, oldest first."""

        async def act(world: World) -> list[str]:
            return [(await job_in(world, Status.FAILED, **changes)).id for _ in range(count)]

        return self.do(act)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COATCHECK_STORE", f"sqlite:///{tmp_path / 'shop.db'}")
    shop = Shop(tmp_path / "shop.db")
    shop.do(lambda world: world.store.check_health())
    return shop


@pytest.fixture
def shell(shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def test_a_list_for_programs_and_as_json(shop: Shop, shell: Shell) -> None:
    ids = shop.fail(3)
    lines = [line.split("\t") for line in shell.run("jobs", "list").splitlines()]
    assert [line[0] for line in lines] == ids[::-1]
    assert lines[0][1:5] == ["acme", "reports", "failed", "1/3"]
    found = shell.json("jobs", "list", "--limit", "2")
    assert [job["id"] for job in found["jobs"]] == ids[:0:-1]
    rest = shell.json("jobs", "list", "--after", found["next"])
    assert ([job["id"] for job in rest["jobs"]], rest["next"]) == (ids[:1], None)
    assert shell.run("jobs", "list", "--tenant", "other") == ""
    assert len(shell.json("dead-letters", "list", "--created-since", "2h")["jobs"]) == 3
    assert shell.run("jobs", "list", "--finished-since", "1s") == ""
    assert len(shell.run("jobs", "list", "--status", "failed", "--category", "invalid_input").splitlines()) == 3


def test_one_job_in_full(shop: Shop, shell: Shell) -> None:
    (job_id,) = shop.fail()
    text = shell.run("jobs", "show", job_id)
    assert "KeyError: 'north'" in text
    assert "attempt 1" in text
    job = shell.json("dead-letters", "show", job_id)
    assert job["attempts"][0]["error"]["operator_detail"] == "KeyError: 'north'"
    assert shell.run("jobs", "show", job_id, "--payload") == '{"branch":"north"}'
    assert shell.actions() == ["job.read-payload"]
    assert "There is no job" in shell.refused("jobs", "show", "job_" + "0" * 28)


def test_bb_057_the_reason_of_a_cancel_stands_in_the_audit_log(shop: Shop, shell: Shell) -> None:
    queued = shop.do(lambda world: world.accept())
    app = ("--app", "conformance_app:app")
    Path("conformance_app.py").write_text('from coatcheck import App\napp = App("conformance")\n')
    said = shell.run("jobs", "cancel", queued.id, *app, "--reason", "Ordered twice ☂")
    assert said == f"{queued.id} is cancelled\n"
    assert shell.json("jobs", "show", queued.id)["cancel_reason"] == "Ordered twice ☂"
    (entry,) = shell.json("audit")["entries"]
    assert (entry["action"], entry["target"], entry["details"]) == (
        "job.cancel",
        queued.id,
        {"reason": "Ordered twice ☂"},
    )
    assert "at most" in shell.refused("jobs", "cancel", queued.id, *app, "--reason", "x" * 501)


def test_redrive_one_once(shop: Shop, shell: Shell) -> None:
    first, second = shop.fail(2)
    new_id = shell.run("dead-letters", "redrive", first).strip()
    assert shell.run("dead-letters", "redrive", first).strip() == new_id
    assert shell.json("jobs", "show", first)["redriven_as"] == new_id
    assert [job["id"] for job in shell.json("dead-letters", "list")["jobs"]] == [second]
    assert "only a failed job" in shell.refused("dead-letters", "redrive", new_id)
    assert shell.actions() == ["job.redrive"]


def test_redrive_with_another_payload(shop: Shop, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (job_id,) = shop.fail()
    Path("shop_of_reports.py").write_text(
        "from pydantic import BaseModel\nfrom coatcheck import App, Job\napp = App('conformance')\n"
        "class Report(BaseModel):\n    branch: str\n"
        "@app.operation('reports')\nasync def reports(request: Report, job: Job) -> None: ...\n"
    )
    Path("bad.json").write_text('{"branch": 7}')
    given = ("--payload", "bad.json", "--app", "shop_of_reports:app")
    assert "/branch" in shell.refused("dead-letters", "redrive", job_id, *given)
    assert "cannot be read" in shell.refused("dead-letters", "redrive", job_id, "--payload", "none.json", *given[2:])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"branch": "york"}')))
    new_id = shell.run("dead-letters", "redrive", job_id, "--payload", "-", *given[2:]).strip()
    assert shell.run("jobs", "show", new_id, "--payload") == '{"branch": "york"}'


def test_redrive_many(shop: Shop, shell: Shell) -> None:
    ids = shop.fail(7)
    shop.fail(2, operation="exports")
    wanted = ("dead-letters", "redrive-many", "--operation", "reports")
    assert shell.json(*wanted, "--dry-run") == {"count": 7, "first": ids}
    assert shell.run(*wanted, "--rate", "1000") == "7 redriven\n"
    assert shell.run(*wanted, "--rate", "1000") == "0 redriven\n"
    assert len(shell.json("dead-letters", "list")["jobs"]) == 2
    assert shell.json("dead-letters", "redrive-many", "--all", "--rate", "1000") == {"redriven": 2, "left": 0}
    assert len(shell.json("jobs", "list", "--status", "queued")["jobs"]) == 9


def test_a_tenant_s_end(shop: Shop, shell: Shell) -> None:
    (job_id,) = shop.fail()
    shop.do(lambda world: world.accept())
    shell.run("tenants", "add", "acme")
    assert shell.json("tenants", "revoke", "acme")["revocation"] == "quarantine"
    assert shell.json("tenants", "restore", "acme")["revocation"] is None
    revoked = shell.json("tenants", "revoke", "acme", "--policy", "cancel")
    assert (revoked["revocation"], revoked["queued"], revoked["finished"]) == ("cancel", 1, 1)
    assert "is revoked" in shell.refused("dead-letters", "redrive", job_id)
    assert shell.json("dead-letters", "redrive-many", "--all", "--rate", "1000") == {"redriven": 0, "left": 1}
    assert "cannot be undone" in shell.refused("tenants", "restore", "acme")
    assert "stricter" in shell.refused("tenants", "revoke", "acme", "--policy", "finish")
    assert "must be one of" in shell.refused("tenants", "revoke", "acme", "--policy", "kill")
    assert "no tenant" in shell.refused("tenants", "revoke", "nobody")

    async def carry_out(world: World) -> None:
        world.clock.advance(120)
        for _ in range(2):
            await world.store.carry_out_revocation("acme", Policies(world.policies), world.now, 100)

    shop.do(carry_out)
    done = shell.json("tenants", "revoke", "acme", "--policy", "cancel", "--wait")
    assert (done["queued"], done["revocation_done_at"] is not None) == (0, True)
    assert "revocation_done_at" in shell.run("tenants", "show", "acme")


def test_what_operations_declare_holds_where_no_policy_is_named(shop: Shop, shell: Shell) -> None:
    Path("careful_shop.py").write_text(
        "from coatcheck import App, Job\napp = App('conformance')\n"
        "@app.operation('payments', on_revoke='finish')\nasync def pay(request: dict, job: Job) -> None: ...\n"
        "@app.operation('reports')\nasync def report(request: dict, job: Job) -> None: ...\n"
    )
    shell.run("tenants", "add", "acme")
    declared = ("--app", "careful_shop:app", "--on-revoke", "cancel")
    revoked = shell.json("tenants", "revoke", "acme", *declared)
    assert (revoked["revocation"], revoked["revocation_by_operation"]) == ("cancel", {"payments": "finish"})
    assert "payments: finish" in shell.run("tenants", "show", "acme")
    named = shell.json("tenants", "revoke", "acme", "--policy", "erase", *declared)
    assert (named["revocation"], named["revocation_by_operation"]) == ("erase", {})


class TestWhatDrivesATerminal:
    """Texts of clients and handlers come out as they are meant to be read, and do nothing."""

    def _job(self, shop: Shop) -> JobRecord:
        async def act(world: World) -> JobRecord:
            claim = await world.start(payload=json.dumps({"name": CSI}, ensure_ascii=False).encode())
            await cancel(world, claim.job, HOSTILE)
            error = ErrorInfo(ErrorCategory.HANDLER_ERROR, HOSTILE, "bad", f"Traceback:\n{HOSTILE}\n[bold]x[/bold]")
            claims = await world.claim()
            assert not claims
            await world.finish(claim, Failed(error, is_retryable=False))
            return claim.job

        return shop.do(act)

    @pytest.mark.parametrize("words", [("jobs", "list"), ("jobs", "show"), ("jobs", "show", "--json")])
    def test_bb_114_nothing_gets_through(self, shop: Shop, shell: Shell, words: tuple[str, ...]) -> None:
        job = self._job(shop)
        out = shell.run(*words[:2], *([job.id] if "show" in words else []), *words[2:])
        assert job.id in out
        assert not [char for char in out if char in "\x1b\x07\x9b\u202e"]
        if "show" in words:
            assert "[bold]x[/bold]" in out
            assert "\\x1b" in out or "\\u001b" in out

    @pytest.mark.parametrize("width", [200, 20])
    def test_nor_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
        drawn = io.StringIO()
        monkeypatch.setattr(printing, "Console", lambda **how: Console(file=drawn, force_terminal=True, width=width))
        printing.print_rows(("id", "at", "error"), [("job_1", "now", HOSTILE + "[red]")])
        text = drawn.getvalue()
        assert "\\x1b]0;owned\\x07" in text.replace("\n", "")
        assert "[red]" in text
        assert not [char for char in text if char in "\x07\x9b\u202e"]
        assert "\x1b]" not in text

    def test_escapes_are_seen(self) -> None:
        assert shown("a\nb\tc\x7f\udc80é☂") == "a\\nb\\tc\\x7f\\udc80é☂"
        assert shown_text("a\nb\tc\r") == "a\nb\tc\\r"
