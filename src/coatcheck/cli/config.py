"""`coatcheck config`: the default settings file, and the settings in force."""

import json
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from coatcheck.cli.flags import config_option
from coatcheck.setting_values import SettingRow, without_credentials
from coatcheck.settings import Settings, describe_settings

_WIDTH = 100
_HEAD = """\
Settings of Coatcheck. Save as coatcheck.toml and take away the # of what you change.
Flags and COATCHECK_* variables win over this file.
"""


def config(
    show: Annotated[
        bool, typer.Option("--show", help="Show the settings in force instead; secrets are hidden.")
    ] = False,
    config_file: Annotated[Path | None, config_option()] = None,
) -> None:
    """Print a settings file with every setting, its default and what it means.

    Examples:

      coatcheck config > coatcheck.toml

      coatcheck config --show
    """
    if show:
        settings = Settings() if config_file is None else Settings(config_file=config_file)
        typer.echo("\n".join(_shown(settings, row) for row in describe_settings()))
    else:
        typer.echo(default_file(), nl=False)


def default_file() -> str:
    """The commented settings file with every setting at its default."""
    parts = [_comment(_HEAD)]
    group = ""
    for row in describe_settings():
        if row.group != group:
            group = row.group
            parts.append(f"# --- {group} ".ljust(_WIDTH, "-") + "\n")
        parts.append(_entry(row))
    return "\n".join(parts)


def _entry(row: SettingRow) -> str:
    is_unset = row.default is None or row.default == ()
    value = row.example if is_unset else row.default
    meaning = f"{row.description} Value: {row.type}" + ("; not set by default, for example:" if is_unset else ".")
    return _comment(meaning) + f"#{row.name} = {_toml(value)}\n"


def _comment(text: str) -> str:
    lines = [line for part in text.strip().splitlines() for line in textwrap.wrap(part, _WIDTH - 2)]
    return "".join(f"# {line}\n" for line in lines)


def _toml(value: Any) -> str:
    """A default or example in TOML, which writes texts, numbers and lists as JSON does."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, default=str)


def _shown(settings: Settings, row: SettingRow) -> str:
    value = getattr(settings, row.name)
    if value in (None, ()):
        return f"# {row.name} is not set"
    if row.is_secret:
        return f"# {row.name} is set"
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        value = without_credentials(value)
    return f"{row.name} = {_toml(value)}"
