"""Which store the settings name, what is told of it, and what happens where its driver is missing."""

from importlib import import_module
from types import ModuleType

import pytest

from coatcheck import App, Settings
from coatcheck.cli.config import config
from coatcheck.runtime import Runtime, StartRefused
from coatcheck.setting_file import SettingsError

POOLED = {"store": "postgresql://jobs@pooler/jobs", "postgres_pooler": "transaction"}
DIRECT = "postgresql://jobs@db/jobs"


@pytest.mark.parametrize(
    ("store", "name"),
    [
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("postgresql://u:s3cret@db.internal:5432/jobs?sslmode=require", "postgresql://db.internal:5432/jobs"),
        ("postgres://db/jobs?user=u&password=s3cret", "postgres://db/jobs"),
        ("postgresql://u:p@ss@a,b:5433/jobs", "postgresql://a,b:5433/jobs"),
        ("postgresql:///jobs?host=/run/postgresql", "postgresql:///jobs"),
    ],
)
def test_what_gives_access_is_not_told(store: str, name: str) -> None:
    settings = Settings(store=store)
    assert settings.store == store
    assert settings.store_name == name


@pytest.mark.parametrize(
    ("given", "listen_dsn"),
    [
        ({"store": DIRECT}, DIRECT),
        ({"store": DIRECT, "postgres_listen": "off"}, None),
        (POOLED, None),
        (POOLED | {"postgres_listen": DIRECT}, DIRECT),
    ],
)
def test_hints_are_listened_for_where_a_session_is_to_be_had(given: dict[str, str], listen_dsn: str | None) -> None:
    assert Settings(**given).listen_dsn == listen_dsn


@pytest.mark.parametrize(
    "given",
    [
        {"store": "postgresql://"},
        {"store": "mysql://db/jobs"},
        {"postgres_listen": "on"},
        {"postgres_pooler": "session"},
        {"postgres_connections": 0},
    ],
)
def test_what_cannot_hold_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(given))):
        Settings(**given)


def test_a_driver_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_without_driver(name: str) -> ModuleType:
        if name.startswith("coatcheck.stores.postgres"):
            raise ModuleNotFoundError("No module named 'asyncpg'", name="asyncpg")
        return import_module(name)

    monkeypatch.setattr("coatcheck.runtime.import_module", import_without_driver)
    with pytest.raises(StartRefused, match=r"asyncpg is not installed; install coatcheck\[postgres\]"):
        Runtime(App("shop"), Settings(store=DIRECT, roles=("api",)))


@pytest.mark.parametrize("store", ["postgresql://u:s3cret@db/jobs", "postgresql://u:s@3cret@db/jobs?password=s3cret"])
def test_the_settings_in_force_are_shown_without_what_gives_access(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COATCHECK_STORE", store)
    monkeypatch.setenv("COATCHECK_POSTGRES_LISTEN", store)
    config(show=True)
    shown = capsys.readouterr().out
    assert "3cret" not in shown
    assert shown.count("db/jobs") == 2
