"""Results as they are kept: one JSON file for each run, with the machine, the date and the versions."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.places import RESULTS, ROOT
from benchmarks.rows import Row

OUR_VERSIONS = ("uvicorn", "httptools", "uvloop", "apsw", "asyncpg", "pydantic", "starlette")


def describe(rows: Sequence[Row], facts: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, Any]:
    """Everything a reader needs to compare this run with another."""
    return {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": dict(facts),
        "versions": dict(versions),
        "rows": [asdict(row) | {"is_disturbed": row.is_disturbed} for row in rows],
    }


def keep(result: Mapping[str, Any]) -> Path:
    """Write the result below benchmarks/results, named by its date."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    stamp = str(result["taken_at"])[:19].replace(":", "").replace("-", "")
    path = RESULTS / f"{stamp}Z.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def our_versions() -> dict[str, str]:
    """The versions of what our own side is made of."""
    return {name: version(name) for name in OUR_VERSIONS}


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
