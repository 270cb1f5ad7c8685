"""Operators' commands: what they print for people, for programs and as JSON, and what they refuse."""

import getpass
import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from coatcheck.cli.main import main
from coatcheck.cli.operator import NO_SUCH_WORK
from coatcheck.core.api_keys import digest_of, key_id_of


class Shell:
    """Runs commands on one store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def call(self, *words: str) -> int:
        """Run a command; returns its exit code."""
        self._monkeypatch.setattr(sys, "argv", ["coatcheck", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    def run(self, *words: str) -> str:
        """What a command prints that must succeed."""
        assert self.call(*words) == 0, self._capsys.readouterr().err
        return self._capsys.readouterr().out

    def warned(self, *words: str) -> list[str]:
        """What a command that must succeed says beside its answer."""
        assert self.call(*words) == 0
        return self._capsys.readouterr().err.splitlines()

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    def refused(self, *words: str) -> str:
        """The one sentence of a command that must be refused."""
        assert self.call(*words) == 2
        captured = self._capsys.readouterr()
        assert captured.out == ""
        (line,) = captured.err.splitlines()
        return line

    def actions(self) -> list[str]:
        return [entry["action"] for entry in self.json("audit")["entries"]]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    shell = Shell(monkeypatch, capsys)
    shell.run("db", "upgrade", "--app", "tiny-shop")
    return shell


def test_what_a_tenant_costs(shell: Shell) -> None:
    assert shell.json("tenants", "spending", "acme") == {"spending": []}
    assert shell.run("tenants", "spending", "acme") == ""
    assert "at most 10,000" in shell.run("limits", "set", "budget:tokens", "10000", "--tenant", "acme")


def test_tenants(shell: Shell) -> None:
    assert shell.json("tenants", "add", "acme", "--weight", "2")["weight"] == 2.0
    shell.run("tenants", "add", "zenith")
    assert shell.json("tenants", "set", "acme", "--weight", "0.5")["weight"] == 0.5
    assert shell.json("tenants", "pause", "acme")["paused"] is True
    assert shell.json("tenants", "show", "acme")["paused"] is True
    assert shell.json("tenants", "resume", "acme")["paused"] is False
    assert [one["name"] for one in shell.json("tenants", "list")["tenants"]] == ["acme", "zenith"]
    assert [one["name"] for one in shell.json("tenants", "list", "--after", "acme")["tenants"]] == ["zenith"]
    lines = shell.run("tenants", "list").splitlines()
    assert [line.split("\t")[:4] for line in lines] == [["acme", "0.5", "no", "-"], ["zenith", "1", "no", "-"]]
    assert "weight                  0.5" in shell.run("tenants", "show", "acme")
    assert shell.actions() == ["tenant.set"] * 3 + ["tenant.add"] * 2


def test_a_new_key_stands_alone_on_standard_output(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("tenants", "add", "acme")
    text = shell.run("keys", "create", "acme", "--label", "the till", "--expires-in", "90d").rstrip("\n")
    key_id = key_id_of(text.encode())
    assert key_id is not None
    (known,) = shell.json("keys", "list", "acme")["keys"]
    assert (known["id"], known["label"], known["scopes"]) == (key_id, "the till", ["submit", "read", "cancel"])
    everything = shell.run("keys", "list", "acme") + shell.run("audit") + shell.run("audit", "--json")
    assert text not in everything
    assert digest_of(text.encode()) not in everything


def test_keys_are_replaced_and_ended(shell: Shell) -> None:
    shell.run("tenants", "add", "acme")
    old = shell.json("keys", "create", "acme", "--scopes", "read,submit")
    new = shell.json("keys", "rotate", old["id"], "--grace", "15m")
    assert (new["scopes"], new["live"]) == (["submit", "read"], True)
    before, after = shell.json("keys", "list", "acme")["keys"]
    assert (before["live"], before["expires_at"] is not None, after["expires_at"]) == (True, True, None)
    assert shell.json("keys", "revoke", old["id"])["live"] is False
    assert "has ended" in shell.refused("keys", "rotate", old["id"])
    assert shell.actions() == ["key.revoke", "key.rotate", "key.create", "tenant.add"]


def test_limits_say_0_and_unlimited(shell: Shell) -> None:
    limit = shell.json("limits", "set", "queued", "0", "--tenant", "*")
    assert (limit["tenant"], limit["value"], limit["meaning"]) == ("*", 0.0, "none allowed")
    limit = shell.json("limits", "set", "queued", "unlimited", "--tenant", "acme", "--operation", "orders")
    assert (limit["value"], limit["meaning"], limit["origin"]) == (None, "unlimited", "override")
    listed = [line.split("\t") for line in shell.run("limits", "list", "--tenant", "acme").splitlines()]
    assert ["queued", "each", "all together", "0", "none allowed", "override"] in listed
    assert ["queued", "acme", "orders", "-", "unlimited", "override"] in listed
    cleared = shell.json("limits", "clear", "queued", "--tenant", "*")
    assert cleared["origin"] != "override"


def test_an_operation_that_nobody_knows_is_told_of(shell: Shell) -> None:
    (warning,) = shell.warned("operations", "pause", "order")
    assert "no job of an operation 'order'" in warning
    assert shell.warned("operations", "pause", "orders", "--app", "tiny_shop:app") == []


def test_limits_know_what_settings_say(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COATCHECK_TENANT_SUBMIT_RATE", "7")
    listed = shell.json("limits", "list", "--app", "tiny_shop:app")["limits"]
    (found,) = [one for one in listed if (one["name"], one["tenant"], one["operation"]) == ("submit_rate", "*", "")]
    assert (found["value"], found["meaning"], found["origin"]) == (7, "at most 7", "setting")


def test_a_limit_of_an_operation_that_may_be_none_warns(shell: Shell) -> None:
    words = ("limits", "set", "queued", "5", "--operation")
    assert shell.warned(*words, "no-such") == [NO_SUCH_WORK.format("no-such")]
    assert "'no-such'" in NO_SUCH_WORK.format("no-such")
    assert shell.warned("limits", "clear", "queued", "--operation", "no-such") == []
    assert shell.warned(*words, "orders", "--app", "tiny_shop:app") == []
    assert shell.warned("limits", "set", "queued", "5") == []


def test_operations(shell: Shell) -> None:
    for verb, mode in (("pause", "paused"), ("drain", "draining"), ("resume", "open")):
        assert shell.json("operations", verb, "orders")["mode"] == mode
    shell.run("operations", "pause", "orders")
    assert shell.run("operations", "list") == "orders\tpaused\t0\t0\n"
    names = [one["name"] for one in shell.json("operations", "list", "--app", "tiny_shop:app")["operations"]]
    assert names == ["orders"]
    assert shell.run("operations", "resume", "orders") != ""
    assert shell.run("operations", "list") == ""


def test_the_log_names_the_user_and_the_machine(shell: Shell) -> None:
    shell.run("tenants", "add", "acme")
    shell.run("operations", "pause", "orders")
    (entry,) = shell.json("audit", "--tenant", "acme")["entries"]
    assert (entry["actor"], entry["origin"]) == (f"cli:{getpass.getuser()}", socket.gethostname())
    (newest,) = shell.json("audit", "--limit", "1")["entries"]
    assert newest["action"] == "operation.set"
    assert shell.json("audit", "--before", str(newest["seq"]))["entries"] == [entry]
    seq, _, actor, *_ = shell.run("audit", "--tenant", "acme").split("\t")
    assert (seq, actor) == (str(entry["seq"]), entry["actor"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tenants", "show", "nobody"), "no tenant 'nobody'"),
        (("tenants", "add", "acme"), "There is a tenant 'acme' already"),
        (("tenants", "add", "a/b"), "coatcheck: name: A tenant's name has no slash."),
        (("tenants", "add", ""), "coatcheck: name: A tenant's name has 1 to 255 characters."),
        (("tenants", "add", "b", "--weight", "0"), "coatcheck: weight: This must be from 0.01 to 100."),
        (("tenants", "set", "acme", "--weight", "nan"), "coatcheck: weight: This must be from"),
        (("tenants", "pause", "nobody"), "no tenant 'nobody'"),
        (("keys", "create", "nobody"), "no tenant 'nobody'"),
        (("keys", "create", "acme", "--scopes", "write"), "--scopes: Write some of submit, read, cancel, admin"),
        (("keys", "create", "acme", "--scopes", ""), "--scopes: Write some of"),
        (("keys", "create", "acme", "--expires-in", "soon"), "--expires-in: 'soon' is not a duration"),
        (("keys", "create", "acme", "--expires-in", "0s"), "coatcheck: expires_at: This must be in the future."),
        (("keys", "create", "acme", "--label", " x"), "coatcheck: label: There is white space around it."),
        (("keys", "revoke", "no-key"), "There is no key of this id."),
        (("keys", "rotate", "no-key"), "There is no key of this id."),
        (("keys", "rotate", "no-key", "--grace", "90d"), "coatcheck: grace_s: This must be from 0 to 2,592,000."),
        (("limits", "set", "queue", "5"), "coatcheck: name: There is no such limit"),
        (("limits", "set", "queued", "many"), "VALUE: 'many' is neither a number nor `unlimited`."),
        (("limits", "set", "queued", "-1"), "coatcheck: value: This must be from 0 to 1,000,000,000."),
        (("limits", "set", "queued", "inf"), "coatcheck: value: This must be from 0 to 1,000,000,000."),
        (("limits", "set", "queued", "1.5"), "coatcheck: value: This must be a whole number."),
        (("limits", "clear", "queued", "--tenant", "a "), "coatcheck: tenant: There is white space around it."),
        (("limits", "clear", "queued", "--operation", "No"), "coatcheck: operation: This is no operation's name"),
        (
            ("limits", "set", "queued", "1", "--operation", "no-such", "--app", "tiny_shop:app"),
            "coatcheck: operation: There is no op",
        ),
        (("operations", "pause", "No Such"), "coatcheck: operation: This is no operation's name"),
        (("operations", "pause", "no-such", "--app", "tiny_shop:app"), "There is no operation of this name."),
        (("audit", "--limit", "0"), "Invalid value for '--limit'"),
        (("tenants", "list", "--store", "sqlite:///none.db"), "There is no store at sqlite:///"),
    ],
)
def test_mistakes_get_one_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    shell.run("tenants", "add", "acme")
    assert sentence in shell.refused(*words)
    assert shell.actions() == ["tenant.add"]
