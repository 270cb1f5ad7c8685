"""Serving: below another app, and over TLS."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import trustme

from harness.http import Client, as_object, problem
from harness.raw import exchange
from harness.server import QUIET, MountedServer, Server
from harness.stage import Stage

from .conftest import Serve

MOUNT = "/shop/jobs"


@pytest.fixture
def below(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of an outer app with the service mounted; the parameter: its name and uvicorn's arguments."""
    name, *arguments = request.param
    outer = MountedServer(tmp_path, f"harness.mounted:{name}", arguments)
    client = None
    try:
        client = Client(outer.start().url)
        yield client
    finally:
        if client is not None:
            client.close()
        outer.kill()


@pytest.mark.parametrize("below", [["outer"], ["lazy"]], indirect=True, ids=["lifespan", "no-lifespan"])
def test_a_service_below_another_app_names_its_mount_point(below: Client, stage: Stage) -> None:
    assert below.get("/hello").text == "hello from outside"
    answer = below.post(f"{MOUNT}/v1/tasks", stage.task("return"))
    assert answer.status_code == 202
    job = as_object(answer)
    assert job["status_url"] == answer.headers["location"] == f"{MOUNT}/v1/tasks/{job['id']}"
    done = below.final(job)
    assert done["status"] == "succeeded"
    assert below.get(done["result_url"]).json() == done["result"]
    below.post(f"{MOUNT}/v1/tasks", {})
    page = below.get(f"{MOUNT}/v1/tasks?limit=1")
    assert page.links["next"]["url"].startswith(f"{MOUNT}/v1/tasks?")
    assert below.get(page.links["next"]["url"]).json()["jobs"][0]["id"] == job["id"]
    missing = problem(below.get(f"{MOUNT}/v1/tasks/job_x"), 404, "not-found")
    assert missing["type"] == f"{MOUNT}/problems/not-found"
    assert below.get(missing["type"]).status_code == 200
    assert below.get(f"{MOUNT}/readyz").status_code == 200
    with below.stream(job) as events:
        assert [event.type for event in events] == ["done"]


@pytest.mark.parametrize("below", [["outer", "--root-path", "/edge"]], indirect=True, ids=["root-path"])
def test_a_root_path_is_part_of_every_url(below: Client) -> None:
    job = below.submit(f"{MOUNT}/v1/tasks", {})
    assert job["status_url"] == f"/edge{MOUNT}/v1/tasks/{job['id']}"
    inside = job["status_url"].removeprefix("/edge")
    assert below.get(inside, Prefer="wait=10").json()["status"] == "succeeded"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def pems(authority: trustme.CA, tmp_path: Path) -> dict[str, Path]:
    """The files an operator would name: the server's certificate and key, and the clients' authority."""
    paths = {name: tmp_path / f"{name}.pem" for name in ("cert", "key", "ca", "client")}
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(paths["key"]))
    for number, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(str(paths["cert"]), append=number > 0)
    authority.cert_pem.write_to_path(str(paths["ca"]))
    authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(str(paths["client"]))
    return paths


def tls_get(server: Server, authority: trustme.CA, client_pem: Path | None = None) -> httpx.Response:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if client_pem is not None:
        context.load_cert_chain(client_pem)
    with httpx.Client(base_url=f"https://127.0.0.1:{server.port}", verify=context) as http:
        return http.get("/readyz")


def test_tls_is_served(serve: Serve, authority: trustme.CA, pems: dict[str, Path]) -> None:
    server = serve("--tls-cert", str(pems["cert"]), "--tls-key", str(pems["key"]), settings=QUIET)
    assert server.url.startswith("https://")
    assert tls_get(server, authority).status_code == 200
    with pytest.raises((ConnectionError, OSError)):
        exchange(server.port, b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
    assert tls_get(server, authority).status_code == 200


def test_clients_must_show_a_certificate_of_the_authority(
    serve: Serve, authority: trustme.CA, pems: dict[str, Path], tmp_path: Path
) -> None:
    tls = ("--tls-cert", str(pems["cert"]), "--tls-key", str(pems["key"]), "--tls-client-ca", str(pems["ca"]))
    server = serve(*tls, settings=QUIET)
    assert tls_get(server, authority, pems["client"]).status_code == 200
    stranger = tmp_path / "stranger.pem"
    trustme.CA().issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(str(stranger))
    for shown in (None, stranger):
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            tls_get(server, authority, shown)
    assert tls_get(server, authority, pems["client"]).status_code == 200
