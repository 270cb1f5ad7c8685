"""schemathesis takes the document of a running server at its word and looks for an answer that the word does not cover.

All of its checks hold: statuses, headers, media types and bodies are those described, invalid requests are refused and
valid ones are not, unknown methods are 405, what was erased stays gone, and nothing is ever a 500.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import httpx
import pytest

from harness.http import Client
from harness.server import QUIET, Server, server_environment

from .hooks import JOBS
from .prepared import prepare_jobs

APP = "schema.operations:app"
SETTINGS = QUIET | {"wait_max_s": "0.2"}
OPERATOR_KEY = "only-for-tests-of-the-document-that-is-served"
GUARDED = SETTINGS | {"auth": "keys", "operator_key": OPERATOR_KEY, "signing_keys": OPERATOR_KEY}
ADMIN_CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,unsupported_method,ignored_auth"
)
SEED = "20"
EXAMPLES = os.environ.get("TORTURE_SCHEMA_EXAMPLES", "8")
SCENARIOS = os.environ.get("TORTURE_SCHEMA_SCENARIOS", "8")
TIMEOUT_S = 90 if "TORTURE_SCHEMA_EXAMPLES" not in os.environ else 6 * 3600


@pytest.fixture
def documented(tmp_path: Path) -> Iterator[Server]:
    """A server with operations of every kind, which must not meet a fault of its own."""
    own = Server(tmp_path, settings=SETTINGS, app_ref=APP)
    try:
        yield own.start()
        assert own.log_lines("request_failed") == []
        own.stop()
    finally:
        own.kill()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Server, Mapping[str, str]]]:
    """The same where clients have to authenticate, and the header that does it."""
    own = Server(tmp_path, settings=GUARDED, app_ref=APP)
    try:
        own.start()
        with httpx.Client(base_url=own.url, headers={"Authorization": f"Bearer {OPERATOR_KEY}"}) as operator:
            assert operator.post("/admin/tenants", json={"name": "acme"}).is_success
            key = operator.post("/admin/tenants/acme/keys", json={}).json()["key"]
        yield own, {"Authorization": f"Bearer {key}"}
        assert own.log_lines("request_failed") == []
        own.stop()
    finally:
        own.kill()


def probe(server: Server, folder: Path, *options: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
    """Run schemathesis over the server's document with every check."""
    client = Client(server.url, headers=headers)
    jobs = prepare_jobs(client)
    client.close()
    run(folder, jobs, [*command(f"{server.url}/openapi.json", "all"), *options], headers)


def run(folder: Path, prepared: Mapping[str, Sequence[str]], words: Sequence[str], headers: Mapping[str, str]) -> None:
    """Run schemathesis, which must find nothing."""
    jobs = folder / "jobs.json"
    jobs.write_text(json.dumps(prepared))
    found = subprocess.run(
        [*words, *(f"--header={name}: {value}" for name, value in headers.items())],
        cwd=folder,
        env=server_environment({}) | {"SCHEMATHESIS_HOOKS": "schema.hooks", JOBS: str(jobs)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert found.returncode == 0, shortened(found.stdout + found.stderr)


def command(document: str, checks: str) -> Sequence[str]:
    arguments = ["run", document, "--checks", checks, "--seed", SEED]
    quiet = ["--no-color", "--warnings", "off", "--continue-on-failure", "--generation-database", "none"]
    return [sys.executable, "-m", "schemathesis.cli", *arguments, *quiet]


def shortened(report: str) -> str:
    """The report without its long lines, which only repeat long values."""
    return "\n".join(line[:400] for line in report.splitlines()[:400])


@pytest.mark.timeout(TIMEOUT_S)
def test_every_boundary_of_every_parameter_is_as_described(documented: Server, tmp_path: Path) -> None:
    probe(documented, tmp_path, "--phases", "coverage")


@pytest.mark.timeout(TIMEOUT_S)
def test_random_requests_get_described_answers(documented: Server, tmp_path: Path) -> None:
    probe(documented, tmp_path, "--phases", "examples,fuzzing", "--max-examples", EXAMPLES)


@pytest.mark.timeout(TIMEOUT_S)
def test_following_the_links_gets_described_answers(documented: Server, tmp_path: Path) -> None:
    probe(documented, tmp_path, "--phases", "stateful", "--max-examples", SCENARIOS)


@pytest.mark.timeout(TIMEOUT_S)
def test_with_authentication_every_answer_is_as_described(
    guarded: tuple[Server, Mapping[str, str]], tmp_path: Path
) -> None:
    """Among the checks: what a document guards is refused without a credential, and with a made-up one."""
    server, headers = guarded
    probe(server, tmp_path, "--phases", "examples,fuzzing", "--max-examples", EXAMPLES, headers=headers)


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("phases", ["coverage", "examples,fuzzing"])
def test_operators_are_answered_as_their_document_describes(
    guarded: tuple[Server, Mapping[str, str]], tmp_path: Path, phases: str
) -> None:
    """But for what is refused in words: bounds of numbers and names, and what does not fit what there is."""
    server, headers = guarded
    client = Client(server.url, headers=headers)
    job_ids = [job_id for ids in prepare_jobs(client).values() for job_id in ids]
    client.close()
    prepared = {"/admin/jobs": job_ids, "/admin/dead-letters": job_ids, "/admin/tenants": ["acme"]}
    document = f"{server.url}/admin/openapi.json"
    options = ["--phases", phases, "--max-examples", EXAMPLES]
    run(tmp_path, prepared, [*command(document, ADMIN_CHECKS), *options], {"Authorization": f"Bearer {OPERATOR_KEY}"})
