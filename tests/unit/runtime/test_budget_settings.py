"""Budgets from the settings and from a declaration, as a service enforces them that was started with both."""

from pathlib import Path

import pytest

from coatcheck.app import App
from coatcheck.core.problems import Refused
from coatcheck.execution.job import Job
from coatcheck.service import Service
from coatcheck.setting_file import SettingsError
from coatcheck.settings import Settings

app = App("budget-shop")


@app.operation("priced", cost={"tokens": lambda request: request["tokens"]}, budget="4 tokens / 1d")
async def priced(request: dict[str, int], job: Job) -> None:
    """Never run: no worker is started."""


@app.operation("others", cost={"tokens": 4})
async def others(request: dict[str, int], job: Job) -> None:
    """Never run either."""


def _settings(folder: Path, budgets: str) -> Settings:
    return Settings.model_validate({"store": f"sqlite:///{folder}/jobs.db", "roles": "api", "budgets": budgets})


async def test_a_service_refuses_what_its_tenants_cannot_pay(tmp_path: Path) -> None:
    service = Service(app, _settings(tmp_path, "10 tokens / 1d"))
    async with service.lifespan():
        await service.submit("priced", {"tokens": 3})
        with pytest.raises(Refused, match="1 of this tenant's 4 in 'priced' are left"):
            await service.submit("priced", {"tokens": 2})
        await service.submit("others", {})
        with pytest.raises(Refused, match="3 of this tenant's 10 are left"):
            await service.submit("others", {})
        await service.submit("others", {}, tenant="another")


def test_two_windows_of_a_kind_keep_a_service_from_starting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="budgets: 'tokens' has windows"):
        Service(app, _settings(tmp_path, "10 tokens / 1h"))


def test_a_kind_stands_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"budgets is '2 a / 1d, 1 a / 1h', but it must be .* each kind once"):
        _settings(tmp_path, "2 a / 1d, 1 a / 1h")
