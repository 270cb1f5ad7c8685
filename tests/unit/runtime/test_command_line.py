"""The command line: one sentence for every mistake, and help that teaches."""

import itertools
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from coatcheck.cli.config import default_file
from coatcheck.cli.flags import flag_of
from coatcheck.cli.main import main
from coatcheck.settings import Settings, describe_settings

COMMANDS = (
    *("serve", "check", "openapi", "jobs list", "jobs show", "jobs cancel"),
    *("dead-letters list", "dead-letters show", "dead-letters redrive", "dead-letters redrive-many"),
    *("db status", "db upgrade", "db copy", "config", "version", "audit"),
    *("tenants add", "tenants list", "tenants show", "tenants set", "tenants pause", "tenants resume"),
    *("tenants revoke", "tenants restore"),
    *("keys create", "keys list", "keys revoke", "keys rotate", "limits list", "limits set", "limits clear"),
    *("operations list", "operations pause", "operations resume", "operations drain"),
)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["coatcheck", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("serve",), "Missing argument"),
        (("serve", "tiny_shop:app", "--prot", "1"), "No such option"),
        (("fly",), "No such command"),
        (("serve", "tiny_shop:app", "--port", "x"), "port is 'x', but it must be a whole number"),
        (("serve", "not_there:app"), "There is no module 'not_there'"),
        (("serve", "tiny_shop"), "write MODULE:ATTRIBUTE"),
        (("serve", "tiny_shop:shop"), "has no attribute 'shop'"),
        (("serve", "tiny_shop:Order"), "not a coatcheck App"),
        (("serve", "tiny_shop:app", "--store", "sqlite:////nowhere/x.db", "--port", "0"), "/nowhere does not exist"),
        (("serve", "tiny_shop:app", "--store", "sqlite:////etc", "--port", "0"), "/etc is a folder; name a file"),
        (("check", "tiny_shop:app", "--config", "none.toml"), "none.toml cannot be read"),
        (("db",), "Missing command"),
        (("db", "upgrade"), "name its app with --app"),
        (("db", "upgrade", "--app", "shop:app"), "takes the app's name, not where it is. App name 'shop:app' must"),
        (("db", "status", "--store", "sqlite:////nowhere/x.db"), "/nowhere does not exist"),
        (("db", "status", "--store", "postgresql://u:secret@127.0.0.1:1/jobs"), "store: PostgreSQL at 127.0.0.1:1: "),
        (("db", "status", "--store", "postgresql://u:se/cret@h/jobs"), "the PostgreSQL URL cannot be read; write"),
        (("db", "status", "--store", "postgresql://127.0.0.1:1/jobs?sslmode=x"), "URL is wrong: `sslmode` parameter"),
        (("dead-letters", "redrive", "job_1"), "'job_1' is no job id"),
        (("dead-letters", "redrive", "job_" + "0" * 28), "There is no store at"),
        (("dead-letters", "redrive", "job_" + "0" * 28, "--payload", "-"), "say with --app"),
        (("dead-letters", "redrive-many"), "Say which dead letters"),
        (("jobs", "show", "x"), "'x' is no job id"),
        (("jobs", "list", "--status", "broken"), "must be one of queued, running"),
        (("jobs", "list", "--created-since", "yesterday"), "must be an instant such as"),
        (("jobs", "list", "--limit", "0"), "--limit"),
    ],
)
def test_mistakes_get_one_sentence(
    words: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *words) == 2
    captured = capsys.readouterr()
    [line] = [line for line in captured.err.splitlines() if not line.startswith("{")]
    assert line.startswith("coatcheck: ")
    assert sentence in line
    assert "cret" not in line


def test_an_import_that_fails_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_shop.py").write_text("a = 1\nb = a / 0\n")
    assert call(monkeypatch, "serve", "broken_shop:app") == 2
    assert f"ZeroDivisionError: division by zero ({tmp_path / 'broken_shop.py'}, line 2)" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps_with_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *command.split(), "--help") == 0
    out = capsys.readouterr().out
    assert "Example" in out
    assert f"coatcheck {command}" in out
    assert "\x1b[" not in out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fills_the_terminal(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert call(monkeypatch, *command.split(), "--help") == 0
    prose = capsys.readouterr().out.partition("╭")[0].splitlines()
    for line, following in itertools.pairwise(line.strip() for line in prose):
        if line and following:
            assert len(f"{line} {following.split()[0]}") > 98, "the next word would not have been too long"


def test_serve_has_a_flag_for_every_setting_that_is_no_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(monkeypatch, "serve", "--help")
    out = capsys.readouterr().out
    for row in describe_settings():
        assert (f"{flag_of(row.name)} " in out) is not row.is_secret


def test_help_calls_a_number_what_must_be_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert call(monkeypatch, "serve", "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    numbers = {flag_of(row.name) for row in describe_settings() if row.type.startswith("a whole number")}
    assert {line.split()[1] for line in lines if " NUMBER " in line} == numbers


def test_the_default_file_holds_every_default(tmp_path: Path) -> None:
    text = default_file()
    assert max(len(line) for line in text.splitlines()) <= 120
    settings_lines = [line[1:] for line in text.splitlines() if line.startswith("#") and not line.startswith("# ")]
    values = tomllib.loads("\n".join(settings_lines))
    assert list(values) == [row.name for row in describe_settings()]
    for row in describe_settings():
        if row.default not in (None, ()):
            default = list(row.default) if isinstance(row.default, tuple) else row.default
            assert values[row.name] == default
    (tmp_path / "coatcheck.toml").write_text(text)
    assert Settings() == Settings(config_file=tmp_path / "coatcheck.toml")


def test_config_shows_what_is_in_force(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COATCHECK_PORT", "9000")
    assert call(monkeypatch, "config", "--show") == 0
    shown = tomllib.loads(capsys.readouterr().out)
    assert shown["port"] == 9000
    assert call(monkeypatch, "config") == 0
    assert capsys.readouterr().out == default_file()


def test_config_shows_of_a_secret_only_whether_it_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "config", "--show") == 0
    assert "# operator_key is not set" in capsys.readouterr().out
    monkeypatch.setenv("COATCHECK_OPERATOR_KEY", "never-to-be-seen-by-anybody-at-all")
    assert call(monkeypatch, "config", "--show") == 0
    shown = capsys.readouterr().out
    assert "# operator_key is set" in shown
    assert "never-to-be-seen" not in shown


def test_check_shows_operations_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "check", "tiny_shop:app") == 0
    out = capsys.readouterr().out
    assert "will be made" in out
    assert "/orders" in out
    assert list(tmp_path.iterdir()) == []


def test_check_refuses_a_store_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "coatcheck.db").write_text("something else" * 100)
    assert call(monkeypatch, "check", "tiny_shop:app") == 2
    assert "coatcheck.db" in capsys.readouterr().err


def test_openapi_prints_the_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "openapi", "tiny_shop:app") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["openapi"].startswith("3.1")
    assert "/orders" in document["paths"]


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "version") == 0
    assert "SQLite 3." in capsys.readouterr().out


def test_it_runs_as_a_module() -> None:
    ended = subprocess.run([sys.executable, "-m", "coatcheck", "version"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert ended.stdout.startswith("coatcheck ")
