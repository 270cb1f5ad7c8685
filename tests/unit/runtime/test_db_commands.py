"""`coatcheck db`: what it says, and the exit codes that scripts go by."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import pytest

from coatcheck.cli.main import main
from coatcheck.setting_values import store_name
from coatcheck.stores.postgres import schema as postgres_schema
from coatcheck.stores.sqlite import schema as sqlite_schema
from coatcheck.stores.sqlite.statements import migrations
from harness.postgres_server import shared_server

Run: TypeAlias = Callable[..., tuple[int, str]]

NOW = migrations()[-1][0]
LATER = [(NOW + 1, ["CREATE TABLE later (name text PRIMARY KEY)"])]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ModuleType]:
    """A place for a store, and its engine's code for the schema."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/jobs.db", sqlite_schema
    return asyncio.run(shared_server().new_database()), postgres_schema


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line; returns its exit code and all that it said."""

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["coatcheck", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        captured = capsys.readouterr()
        return ended.value.code, captured.out + captured.err

    return run


def test_status_tells_scripts_where_the_schema_is(
    store: tuple[str, ModuleType], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, code = store
    assert run("db", "status", "--store", url)[0] == 5
    assert run("db", "upgrade", "--store", url, "--app", "tiny-shop")[0] == 0
    exit_code, said = run("db", "status", "--store", url)
    assert exit_code == 0
    assert "tiny-shop" in said
    assert f"{NOW} (this version knows {NOW})" in said
    known = code.migrations()
    monkeypatch.setattr(code, "migrations", lambda: [*known, *LATER])
    exit_code, said = run("db", "status", "--store", url)
    assert (exit_code, f"pending, from {NOW} to {NOW + 1}" in said) == (3, True)
    assert run("db", "upgrade", "--store", url)[0] == 0
    monkeypatch.setattr(code, "migrations", lambda: known)
    exit_code, said = run("db", "status", "--store", url)
    assert (exit_code, "will not start" in said) == (4, True)
    exit_code, said = run("db", "upgrade", "--store", url)
    assert (exit_code, f"this build knows {NOW}" in said) == (2, True)


def test_upgrade_tells_what_it_did(store: tuple[str, ModuleType], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    url, code = store
    assert f"{NOW} done" in run("db", "upgrade", "--store", url, "--app", "tiny-shop")[1]
    assert "Nothing to do" in run("db", "upgrade", "--store", url)[1]
    known = code.migrations()
    monkeypatch.setattr(code, "migrations", lambda: [*known, *LATER, (NOW + 2, [])])
    assert f"Migrations {NOW + 1}, {NOW + 2} done" in run("db", "upgrade", "--store", url)[1]


def test_check_upgrades_nothing_and_says_who_will(
    store: tuple[str, ModuleType], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, code = store
    assert "will be made" in run("check", "tiny_shop:app", "--store", url)[1]
    run("db", "upgrade", "--store", url, "--app", "tiny-shop")
    known = code.migrations()
    monkeypatch.setattr(code, "migrations", lambda: [*known, *LATER])
    for words, who in (((), "at the first start"), (("--migrate", "false"), "by `coatcheck db upgrade`")):
        exit_code, said = run("check", "tiny_shop:app", "--store", url, *words)
        assert (exit_code, f"from schema {NOW} to {NOW + 1} {who}" in said) == (0, True)
    assert run("db", "status", "--store", url)[0] == 3


def test_a_password_is_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = asyncio.run(shared_server().new_database())
    with_password = dsn.replace("postgres@", "postgres:open-sesame@")
    for words in (("db", "status"), ("db", "upgrade", "--app", "tiny-shop"), ("db", "upgrade"), ("db", "status")):
        assert "open-sesame" not in run(*words, "--store", with_password)[1]


@pytest.mark.parametrize("is_back", [False, True], ids=["to-postgres", "to-sqlite"])
def test_copy_shows_what_was_copied_and_what_comes_next(is_back: bool, run: Run, tmp_path: Path) -> None:
    ends = [f"sqlite:///{tmp_path}/jobs.db", asyncio.run(shared_server().new_database())]
    source, target = reversed(ends) if is_back else ends
    refused = run("db", "copy", "--from", source, "--to", target)
    assert refused == (2, f"coatcheck: There is no store at {store_name(source)}.\n")
    run("db", "upgrade", "--store", source, "--app", "tiny-shop")
    exit_code, said = run("db", "copy", "--from", source, "--to", target)
    assert (exit_code, "Copied app tiny-shop: 0 rows" in said) == (0, True)
    assert f"Start its processes on {store_name(target)}, and put {store_name(source)} away" in said
    assert run("db", "status", "--store", target)[0] == 0
    assert run("check", "tiny_shop:app", "--store", target)[0] == 0


@pytest.mark.parametrize("words", [(), ("--from", "sqlite:///a.db"), ("--from", "file.db", "--to", "sqlite:///b.db")])
def test_copy_needs_two_stores(words: tuple[str, ...], run: Run) -> None:
    exit_code, said = run("db", "copy", *words)
    assert exit_code == 2
    assert said.startswith("coatcheck: ")
    assert said.count("\n") == 1
