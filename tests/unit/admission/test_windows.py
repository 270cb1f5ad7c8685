"""A kind of cost has one window, wherever it is declared."""

import pytest

from coatcheck.admission.budgets import windows_of
from coatcheck.app import App
from coatcheck.execution.job import Job
from coatcheck.setting_file import SettingsError
from coatcheck.settings import Settings


def _app(budget: str) -> App:
    app = App("windows")

    @app.operation("priced", budget=budget)
    async def priced(request: dict[str, int], job: Job) -> None:
        return None

    return app


def test_windows_come_from_settings_and_declarations() -> None:
    settings = Settings.model_validate({"budgets": "10 tokens / 1d, 5 calls / 1h"})
    assert windows_of(settings, _app("1 pages / 1m")) == {"tokens": 86_400, "calls": 3600, "pages": 60}
    assert windows_of(settings, _app("1 tokens / 24h")) == {"tokens": 86_400, "calls": 3600}


def test_two_windows_of_a_kind_are_refused() -> None:
    settings = Settings.model_validate({"budgets": "10 tokens / 1d"})
    with pytest.raises(SettingsError, match="budgets: 'tokens' has windows of 86400 and of 3600 seconds"):
        windows_of(settings, _app("1 tokens / 1h"))
