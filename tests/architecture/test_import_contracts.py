"""The import contracts of `.importlinter` hold, none of them with an exception."""

import subprocess
import sys
from pathlib import Path

from .sources import ROOT, sources

LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def test_import_contracts_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LINT_IMPORTS, "--no-cache", "--no-logo", ".importlinter"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_contracts_have_no_exceptions() -> None:
    assert "ignore_imports" not in (ROOT / ".importlinter").read_text("utf-8")


def test_every_folder_of_the_package_is_a_package() -> None:
    """A folder without `__init__.py` would escape the contracts."""
    folders = {source.path.parent for source in sources("src/coatcheck")}
    assert [str(folder) for folder in sorted(folders) if not Path(folder, "__init__.py").is_file()] == []
