"""Settings of authentication that do not hold, and a start that they forbid."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from coatcheck import App, Service
from coatcheck.runtime import StartRefused
from coatcheck.setting_file import SettingsError
from coatcheck.settings import Settings

TOKENS = {
    "auth": "jwt",
    "jwt_issuer": "https://login.example.org/",
    "jwt_audience": "jobs",
    "jwt_keys": "https://login.example.org/keys",
}


def refusal(**given: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings(**given)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (TOKENS | {"jwt_issuer": None}, "auth has jwt, but jwt_issuer is not set"),
        (TOKENS | {"jwt_audience": ""}, "auth has jwt, but jwt_audience is not set"),
        (TOKENS | {"jwt_keys": None}, "auth has jwt, but jwt_keys is not set"),
        (TOKENS | {"jwt_keys": "http://login.example.org/keys"}, "jwt_keys is"),
        (TOKENS | {"jwt_keys": "https://user:word@login.example.org/keys"}, "jwt_keys is"),
        (TOKENS | {"jwt_keys": "file:/nowhere/at/all"}, "jwt_keys is"),
        (TOKENS | {"jwt_keys": "ftp://login.example.org/keys"}, "jwt_keys is"),
        (TOKENS | {"jwt_algorithms": "HS256"}, "jwt_algorithms is"),
        (TOKENS | {"jwt_algorithms": "RS256,none"}, "jwt_algorithms is"),
        (TOKENS | {"jwt_algorithms": ""}, "jwt_algorithms is"),
        (TOKENS | {"jwt_leeway_s": 301}, "jwt_leeway_s is"),
        ({"auth": "gateway"}, "neither gateway_secrets nor gateway_networks is set"),
        ({"auth": "gateway", "gateway_secrets": "short"}, "gateway_secrets is set, but"),
        ({"auth": "gateway", "gateway_networks": "10.1.2.3/24"}, "gateway_networks is"),
        ({"auth": "gateway", "gateway_networks": "everywhere"}, "gateway_networks is"),
        ({"gateway_header": "X Who"}, "gateway_header is"),
        ({"gateway_scopes": "read,admin"}, "gateway_scopes is"),
        ({"signing_keys": "k" * 31}, "signing_keys is set, but"),
        ({"metrics_key": "k" * 31}, "metrics_key is set, but"),
        ({"metrics_key": "k" * 32, "metrics_open": True}, "metrics_open is true although metrics_key is set"),
    ],
)
def test_what_does_not_hold_is_refused_in_one_sentence(given: dict[str, Any], words: str) -> None:
    sentence = refusal(**given)
    assert words in sentence
    assert "short" not in sentence
    assert "k" * 31 not in sentence
    assert "user:word" not in sentence


def test_what_holds() -> None:
    settings = Settings(**TOKENS, jwt_algorithms="ES256, RS256,ES256", host="192.0.2.1")
    assert settings.jwt_algorithms == ("ES256", "RS256")
    assert settings.jwt_audience == ("jobs",)
    assert Settings(**(TOKENS | {"jwt_keys": "http://127.0.0.1:9000/keys"})).jwt_keys
    assert len(Settings(signing_keys=["k" * 32, "l" * 32]).signing_keys) == 2


def service(folder: Path, **settings: Any) -> Service:
    return Service(App("bookshop"), Settings(store=f"sqlite:///{folder}/jobs.db", roles=("api",), **settings))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}'])
async def test_a_file_of_keys_that_cannot_be_used_stops_the_start(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(StartRefused, match=r"^jwt_keys: [^\n]+\.$"):
        await service(tmp_path, **(TOKENS | {"jwt_keys": f"file:{path}"})).start()


async def test_a_provider_that_is_away_does_not_stop_the_start(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = service(tmp_path, **(TOKENS | {"jwt_keys": f"http://127.0.0.1:{port}/keys"}))
    await started.start()
    await started.stop()


def test_without_what_reads_tokens_the_start_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("coatcheck.http.issuer_tokens")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("coatcheck.admission.credentials_jwt", "coatcheck.admission.issuer_keys", "jwt"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": []}))
    with pytest.raises(StartRefused, match=r"install coatcheck\[jwt\]"):
        service(tmp_path, **(TOKENS | {"jwt_keys": f"file:{path}"}))
    settings = Settings(store=f"sqlite:///{tmp_path}/jobs.db", roles=("upkeep",), **TOKENS)
    assert Service(App("bookshop"), settings)
