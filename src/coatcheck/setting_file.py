"""The settings file, and what is said of a key that nobody knows."""

import difflib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DEFAULT_FILE = "coatcheck.toml"


class SettingsError(Exception):
    """A setting is unknown or cannot hold; the message names it and says what to write instead, in one sentence."""


def read_file(path: Path | str | None, known: Sequence[str]) -> dict[str, Any]:
    """What the file says; of the default file only if there is one.

    Raises:
        SettingsError: it cannot be read, or names a key that is not `known`.
    """
    file = Path(DEFAULT_FILE if path is None else path)
    if path is None and not file.exists():
        return {}
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"The settings file {file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings file {file} is not TOML: {error}.") from None
    for name in values:
        if name not in known:
            raise SettingsError(f"{name} in {file} is not a setting; {advice(name, known)}")
    return values


def advice(name: str, known: Sequence[str]) -> str:
    """What to do about a name that is not `known`."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else "remove it, or see `coatcheck config` for those there are."
