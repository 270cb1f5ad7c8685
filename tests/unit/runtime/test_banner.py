"""What `coatcheck serve` shows when it has started."""

from io import StringIO

import pytest
from rich.console import Console

from coatcheck.app import App
from coatcheck.cli.banner import print_banner
from coatcheck.execution.job import Job
from coatcheck.settings import Settings

app = App("shop")


@app.operation("reports", path="/reports")
async def report(request: int, job: Job) -> int:
    """Count a branch."""
    return request


@app.operation("stocktakings", path="/stocktakings")
async def stocktaking(request: int, job: Job) -> int:
    """Count every book."""
    return request


def shown(settings: Settings) -> list[str]:
    """The lines of the banner, as they are written to what is no terminal."""
    text = StringIO()
    print_banner(app, settings, "http://127.0.0.1:8080", Console(file=text, soft_wrap=True))
    assert "\x1b" not in text.getvalue()
    return text.getvalue().splitlines()


def test_operations_stand_below_each_other() -> None:
    assert [line for line in shown(Settings()) if "POST" in line] == [
        "  Operation POST /reports       Count a branch.",
        "  Operation POST /stocktakings  Count every book.",
    ]


@pytest.mark.parametrize(
    ("auth", "access"),
    [((), "everybody who can reach it, without"), ("none", "everybody who can"), (("keys",), "keys")],
)
def test_it_tells_who_may_come_in(auth: object, access: str) -> None:
    assert any(line.startswith(f"  Access    {access}") for line in shown(Settings(auth=auth)))


def test_without_the_api_nobody_comes_in() -> None:
    assert not [line for line in shown(Settings(roles=("worker",))) if "Access" in line or "POST" in line]
