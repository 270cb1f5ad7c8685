"""What users install: the built wheel has everything in it and serves by itself."""

import importlib.util
import os
import socket
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from coatcheck.testing.waiting import wait_until

from .sources import PACKAGE, ROOT

APP = """
from coatcheck import App, Job

app = App("tiny")


@app.operation("sums", path="/sums")
async def total(request: list[int], job: Job) -> int:
    return sum(request)
"""
BUILD_S = 300
STOP_S = 30


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a release would build it; in this environment, where it has the build backend."""
    folder = tmp_path_factory.mktemp("wheel")
    isolation = ["--no-isolation"] if importlib.util.find_spec("hatchling") else []
    _run([sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", str(folder), str(ROOT)])
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    missing = [str(path.relative_to(PACKAGE.parent)) for path in files]
    assert sorted(set(missing) - packed) == []


def test_wheel_has_licence_types_statements_and_pages(wheel: Path) -> None:
    packed = zipfile.ZipFile(wheel).namelist()
    for ending in ("licenses/LICENSE", "coatcheck/py.typed"):
        assert any(name.endswith(ending) for name in packed), f"no {ending} in the wheel"
    for folder in ("coatcheck/stores/sqlite/sql/", "coatcheck/stores/sqlite/migrations/", "coatcheck/http/static/"):
        assert any(name.startswith(folder) for name in packed), f"nothing from {folder} in the wheel"


def test_wheel_has_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if top != "coatcheck" and not top.endswith(".dist-info")} == set()


@pytest.mark.timeout(300)
def test_installed_wheel_serves(wheel: Path, tmp_path: Path) -> None:
    command = _install(wheel, tmp_path / "venv")
    (tmp_path / "tiny.py").write_text(APP, "utf-8")
    with _serving(command, tmp_path) as client:
        accepted = client.post("/sums", json=[1, 2, 39])
        assert accepted.status_code == httpx.codes.ACCEPTED, accepted.text
        done = client.get(accepted.headers["Location"], headers={"Prefer": "wait=20"}).json()
        assert (done["status"], done["result"]) == ("succeeded", 42), done
        assert client.get("/docs").status_code == httpx.codes.OK


def _install(wheel: Path, venv: Path) -> Path:
    """Install the wheel alone into a fresh environment that borrows this one's other packages; returns its command."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(venv)])
    python = str(venv / "bin" / "python")
    _run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", str(wheel)])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = venv / "lib" / version / "site-packages"
    # A plain path: what this environment has installed in editable form stays out.
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    where = _run([python, "-P", "-c", "import coatcheck; print(coatcheck.__file__)"])
    assert Path(where.strip()).is_relative_to(site_packages), f"not the installed package: {where}"
    return venv / "bin" / "coatcheck"


@contextmanager
def _serving(command: Path, folder: Path) -> Iterator[httpx.Client]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [command, "serve", "tiny:app", "--port", str(port)], cwd=folder, env=_environment(), stdout=log, stderr=log
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            wait_until(lambda: server.poll() is not None or _is_ready(client), "the server to be ready", 60)
            assert server.poll() is None, (folder / "server.log").read_text("utf-8")
            yield client
    finally:
        server.terminate()
        server.wait(STOP_S)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _environment() -> dict[str, str]:
    """This environment without what would lead to the checkout or to settings of ours."""
    left_out = ("COATCHECK_", "PYTHON", "COV_", "COVERAGE_", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command, env=_environment(), capture_output=True, text=True, timeout=BUILD_S, check=False, cwd=ROOT
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
