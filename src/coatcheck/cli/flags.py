"""Every setting as a command-line flag: made from the settings' own descriptions, so that the two cannot differ."""

import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import typer

from coatcheck.setting_values import SettingRow
from coatcheck.settings import Settings, describe_settings

_CONFIG_HELP = "The settings file to read; coatcheck.toml in the working directory if there is one."
_FORMS = {
    "store": "URL",
    "postgres_pooler": "transaction",
    "postgres_listen": "URL|off",
    "events": "file:PATH",
    "public_url": "URL",
    "host": "ADDRESS",
    "auth": "none|LIST",
}


def flag_of(name: str) -> str:
    """The flag that sets a setting: `--grace` for `grace_s`."""
    return "--" + name.removesuffix("_s").replace("_", "-")


def flag_rows() -> list[SettingRow]:
    """The settings that have a flag: all but secrets, since other users of a machine see command lines."""
    return [row for row in describe_settings() if not row.is_secret]


def with_settings(command: Callable[..., None], only: Collection[str] | None = None) -> Callable[..., None]:
    """Add the settings' flags to a command whose last parameter is `settings`, which receives what they make.

    `only`: the settings that matter to it, where these are few; the others are still read from elsewhere.
    """
    own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "settings"]
    flags = [_config_flag(), *(_flag(row) for row in flag_rows() if only is None or row.name in only)]

    def run(**given: Any) -> None:
        values = {parameter.name: given.pop(parameter.name) for parameter in own}
        command(**values, settings=settings_from(given))

    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *flags)]
    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def settings_from(given: Mapping[str, Any]) -> Settings:
    """Settings from the flags that were given; the environment and the file fill in the rest.

    Raises:
        SettingsError: see Settings.
    """
    return Settings(**{name: value for name, value in given.items() if value is not None})


def config_option() -> Any:
    """The option `--config`."""
    return typer.Option("--config", help=_CONFIG_HELP, metavar="FILE", show_default=False)


def _config_flag() -> inspect.Parameter:
    option = typer.Option(None, "--config", help=_CONFIG_HELP, metavar="FILE", show_default=False)
    return _parameter("config_file", option, Path | None)


def _flag(row: SettingRow) -> inspect.Parameter:
    option = typer.Option(
        None,
        flag_of(row.name),
        help=f"{row.description} {_default_text(row)}".strip(),
        metavar=_metavar(row),
        show_default=False,
        rich_help_panel=f"Settings: {row.group}",
    )
    return _parameter(row.name, option, str | None)


def _parameter(name: str, option: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)


def _default_text(row: SettingRow) -> str:
    if row.default is None or row.default == ():
        return ""
    if isinstance(row.default, bool):
        return f"(default: {str(row.default).lower()})"
    default = ",".join(row.default) if isinstance(row.default, tuple) else f"{row.default}".removesuffix(".0")
    return f"(default: {default})"


def _metavar(row: SettingRow) -> str:
    if row.name in _FORMS:
        return _FORMS[row.name]
    if row.name.endswith("_s"):
        return "SECONDS"
    if row.name.startswith("tls_"):
        return "FILE"
    if isinstance(row.default, tuple):
        return "LIST"
    if isinstance(row.default, bool):
        return "true|false"
    return "NUMBER" if row.type.startswith("a whole number") else "TEXT"
