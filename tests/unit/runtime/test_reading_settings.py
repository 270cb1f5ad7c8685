"""Settings: where they come from, and the one sentence each mistake is answered with."""

import os
from pathlib import Path

import pytest

from coatcheck.setting_file import SettingsError
from coatcheck.setting_values import GROUPS
from coatcheck.settings import Settings, describe_settings


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("COATCHECK_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refusal(**given: object) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings(**given)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence


def test_arguments_win_over_the_environment_over_the_file_over_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().port == 8080
    Path("coatcheck.toml").write_text("port = 1\nworkers = 2\n")
    assert Settings().port == 1
    monkeypatch.setenv("COATCHECK_PORT", "2")
    assert Settings().port == 2
    assert Settings(port=3).port == 3
    assert Settings(port=3).workers == 2


def test_a_named_file_is_read_instead_of_the_one_in_the_working_directory(tmp_path: Path) -> None:
    Path("coatcheck.toml").write_text("port = 1\n")
    other = tmp_path / "other.toml"
    other.write_text('roles = ["worker"]\nlease_s = "1m"\n')
    settings = Settings(config_file=other)
    assert (settings.port, settings.roles, settings.lease_s) == (8080, ("worker",), 60.0)


@pytest.mark.parametrize("text", ["worker,api", " api , worker,api"])
def test_lists_in_the_environment_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("COATCHECK_ROLES", text)
    assert Settings().roles == ("api", "worker")


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COATCHECK_PUBLIC_URL", "")
    assert Settings().public_url is None


def test_settings_do_not_change() -> None:
    name = "port"
    with pytest.raises(Exception, match="frozen"):
        setattr(Settings(), name, 1)


def test_unknown_keys_are_named_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(prot=1) == "prot is not a setting; did you mean port?"
    Path("coatcheck.toml").write_text("prot = 1\n")
    assert refusal() == "prot in coatcheck.toml is not a setting; did you mean port?"
    Path("coatcheck.toml").unlink()
    monkeypatch.setenv("COATCHECK_PROT", "1")
    assert refusal() == "The variable COATCHECK_PROT is not a setting; did you mean COATCHECK_PORT?"


def test_a_wrong_value_is_named_with_what_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(port=70000) == "port is 70000, but it must be a whole number from 0 to 65535."
    monkeypatch.setenv("COATCHECK_LEASE_S", "soon")
    assert refusal().startswith("COATCHECK_LEASE_S is 'soon', but it must be a duration")


def test_a_file_that_is_missing_or_no_toml_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(config_file=tmp_path / "none.toml")
    Path("coatcheck.toml").write_text("port == 1")
    assert "is not TOML" in refusal()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"heartbeat_s": 6}, "at most a third of lease_s (15)"),
        ({"host": "192.0.2.1"}, 'set auth, to "none"'),
        ({"host": "::"}, 'set auth, to "none"'),
        ({"host": "jobs.example.org"}, 'set auth, to "none"'),
        ({"tls_key": __file__}, "tls_key is set without tls_cert"),
        ({"tls_client_ca": __file__}, "tls_client_ca is set without tls_cert"),
        ({"tls_cert": "/none"}, "must be a readable PEM file"),
        ({"store": "mysql://db/jobs"}, "must be sqlite:///relative/path"),
        ({"store": "sqlite://jobs.db"}, "must be sqlite:///relative/path"),
        ({"store": "sqlite:///."}, "must be sqlite:///relative/path"),
        ({"store": "sqlite:///:memory:"}, "must be sqlite:///relative/path"),
        ({"events": "kafka:jobs"}, "must be file:PATH"),
        ({"public_url": "jobs.example.org"}, "must be an http or https URL"),
        ({"public_url": "https://user:secret@jobs.example.org"}, "must be an http or https URL"),
        ({"roles": ()}, "must be one or more of"),
        ({"retry_after_min_s": 90}, "must be at most retry_after_max_s"),
        ({"crash_at": "anywhere"}, "must be a fault point"),
    ],
)
def test_values_that_do_not_hold_are_refused(given: dict[str, object], words: str) -> None:
    assert words in refusal(**given)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_word_on_authentication(host: str) -> None:
    assert Settings(host=host).auth == ()


def test_other_addresses_may_be_listened_on_when_that_is_written_out_or_nothing_is_served() -> None:
    assert Settings(host="192.0.2.1", auth="none").host == "192.0.2.1"
    assert Settings(host="192.0.2.1", auth="keys").host == "192.0.2.1"
    assert Settings(host="192.0.2.1", roles=("worker",)).host == "192.0.2.1"


def test_ways_to_authenticate_are_a_list_and_none_is_the_only_one_of_its_list() -> None:
    given = {"gateway_networks": "10.1.2.0/24,::1"}
    assert Settings(auth="gateway, keys,gateway", **given).auth == ("gateway", "keys")
    assert Settings(auth="none").auth == ("none",)
    assert [Settings(auth=auth).has_auth for auth in ("", "none", "keys")] == [False, False, True]
    assert refusal(auth="keys,none").startswith("auth is 'keys,none', but it must be ")
    assert "auth is 'key', but" in refusal(auth="key")


def test_a_secret_that_cannot_be_one_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(operator_key="too-short") == "operator_key is set, but it must be a secret of 32 characters or more."
    monkeypatch.setenv("COATCHECK_OPERATOR_KEY", "too-short")
    assert "too-short" not in refusal()
    assert "too-short" not in repr(Settings(operator_key="too-short" * 4))


def test_paths_are_read_from_urls() -> None:
    settings = Settings(store="sqlite:////srv/jobs.db", events="file:/srv/events.jsonl")
    assert settings.store_path == Path("/srv/jobs.db")
    assert settings.events_path == Path("/srv/events.jsonl")
    assert Settings(public_url="https://jobs.example.org/api/").public_url == "https://jobs.example.org/api"


def test_every_setting_is_described() -> None:
    rows = describe_settings()
    assert sorted(row.name for row in rows) == sorted(Settings.model_fields)
    assert [row.group for row in rows] == sorted((row.group for row in rows), key=GROUPS.index)
    for row in rows:
        assert row.env == f"COATCHECK_{row.name.upper()}"
        assert row.description.endswith("."), row.name
        assert row.type, row.name
        assert row.default not in (None, ()) or row.example, row.name


def test_every_default_holds() -> None:
    defaults = {row.name: row.default for row in describe_settings() if row.default is not None}
    assert Settings(**defaults) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limits_store", "http://valkey"),
        ("limits_store", "redis://"),
        ("limits_store", "unix://"),
        ("tenant_submit_rate", "-1"),
        ("tenant_read_burst", "many"),
        ("queue_depth_max", "-1"),
    ],
)
def test_limits_that_cannot_hold(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"COATCHECK_{name.upper()}", value)
    with pytest.raises(SettingsError, match=f"COATCHECK_{name.upper()} is"):
        Settings()


def test_the_password_of_limits_store_is_not_shown() -> None:
    settings = Settings(limits_store="rediss://:open-sesame@valkey.internal:6379/0")
    assert "open-sesame" not in f"{settings!r} {settings.limits_store}"
    with pytest.raises(SettingsError) as caught:
        Settings(limits_store="http://:open-sesame@valkey")
    assert "open-sesame" not in str(caught.value)
