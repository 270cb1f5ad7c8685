"""The limits that hold where no operator set another: those of the settings, and those the operations declare."""

from collections.abc import Mapping

from coatcheck.app import App
from coatcheck.core.quotas import LimitKey
from coatcheck.settings import Settings


def limits_of_settings(settings: Settings) -> Mapping[LimitKey, float | None]:
    """For each tenant or for all of them together, over all operations."""
    return {}


def limits_of_declarations(app: App) -> Mapping[LimitKey, float | None]:
    """For each tenant or for all of them together, in one operation."""
    return {}


def limit_defaults(settings: Settings, app: App) -> Mapping[LimitKey, float | None]:
    """All of them; no key stands in both."""
    return {**limits_of_settings(settings), **limits_of_declarations(app)}
