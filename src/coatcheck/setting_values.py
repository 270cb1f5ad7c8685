"""What one setting may be: the types and checks that `settings` puts together.

A check raises ValueError without words for the user: the setting's own `form` says what to write.
"""

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from coatcheck.core.durations import seconds

Role: TypeAlias = Literal["api", "worker", "relay", "upkeep"]
ALL_ROLES: tuple[Role, ...] = ("api", "worker", "relay", "upkeep")
LIMITS_SCHEMES = ("redis", "rediss", "valkey", "valkeys", "unix")
HEARTBEATS_IN_A_LEASE_MIN = 3
DURATION = 'a duration such as 15, "15s" or "2m"'

_CREDENTIALS = re.compile(r"(?<=://)[^/\s]+(?=@)|(?<=[?&]password=)[^&\s]+")

WHERE, SERVER, ACCESS, TENANTS, RATES, WORK, ANSWERS, SEEING, TESTING = GROUPS = (
    "Where",
    "Server",
    "Access",
    "Tenants",
    "Rates and saturation",
    "Work",
    "Answers",
    "Seeing",
    "Testing",
)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """What the reference says of one setting. `type` is what a value must be, in words.

    `is_secret`: its value is never shown, and no flag sets it, since other users of a machine see command lines.
    """

    name: str
    env: str
    type: str
    default: Any
    description: str
    group: str
    example: Any
    is_secret: bool = False


def listed(value: Any) -> Any:
    """A comma-separated text becomes its members; other values stay as they are."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return seconds(value)
    return value


def is_postgres(url: str) -> bool:
    """Whether a store's URL names a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


def sqlite_path(url: str) -> Path | None:
    """The SQLite file that a store's URL names, if it names one."""
    return None if is_postgres(url) else Path(url.removeprefix("sqlite:///"))


def store_name(url: str) -> str:
    """What a store's URL names, without what gives access to it."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    # Else the question mark may stand in a password, which would be shown up to there.
    is_clear = "@" in place or "@" not in query
    return f"{scheme}://{place.rpartition('@')[2] if is_clear else '(hidden)'}" if is_postgres(url) else url


def without_credentials(text: str) -> str:
    """A text with what gives access hidden in each of its URLs."""
    return _CREDENTIALS.sub("(hidden)", text)


def _postgres_url(url: str) -> str:
    if "\0" in url or not url.partition("://")[2]:
        raise ValueError("no database")
    return url


def _store_url(url: str) -> str:
    if is_postgres(url):
        return _postgres_url(url)
    scheme, separator, path = url.partition("://")
    if not separator or scheme != "sqlite" or not path.startswith("/") or path in {"/", "/.", "/:memory:"}:
        raise ValueError("no store")
    return url


def _listen_url(url: str) -> str:
    if url != "off" and not is_postgres(url):
        raise ValueError("no place to listen")
    return url if url == "off" else _postgres_url(url)


def _limits_url(url: SecretStr) -> SecretStr:
    parts = urlsplit(url.get_secret_value())
    is_named = bool(parts.path) if parts.scheme == "unix" else bool(parts.hostname) and parts.port != 0
    if parts.scheme not in LIMITS_SCHEMES or not is_named:
        raise ValueError("no such server")
    return url


def _events_url(url: str) -> str:
    scheme, _, path = url.partition(":")
    if scheme != "file" or not path:
        raise ValueError("no channel")
    return url


def _public_url(url: str) -> str:
    parts = urlsplit(url)
    plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or not plain:
        raise ValueError("no base URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("credentials in a URL")
    return url.rstrip("/")


def _ordered_roles(roles: tuple[Role, ...]) -> tuple[Role, ...]:
    if not roles:
        raise ValueError("no role")
    return tuple(role for role in ALL_ROLES if role in roles)


def _readable_file(path: Path) -> Path:
    if not path.is_file() or not os.access(path, os.R_OK):
        raise ValueError("no such file")
    return path


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on this host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def lease_fault(lease_s: float, heartbeat_s: float) -> str | None:
    """What is wrong with the two together, if anything."""
    if heartbeat_s * HEARTBEATS_IN_A_LEASE_MIN <= lease_s:
        return None
    return f"heartbeat_s is {heartbeat_s:g}, but it must be at most a third of lease_s ({lease_s:g})."


def retry_after_fault(min_s: int, max_s: int) -> str | None:
    """What is wrong with the two together, if anything."""
    if min_s <= max_s:
        return None
    return f"retry_after_min_s is {min_s}, but it must be at most retry_after_max_s ({max_s})."


def setting(default: Any, group: str, form: str, description: str, example: Any = None, **bounds: Any) -> Any:
    """A field that says of itself what it must be, so that errors, `coatcheck config` and the docs agree."""
    extra = {"group": group, "form": form, "example": example}
    return Field(default, description=description, json_schema_extra=extra, **bounds)


def secret(default: Any, group: str, form: str, description: str, example: Any, **bounds: Any) -> Any:
    """A setting whose value is never shown."""
    extra = {"group": group, "form": form, "example": example, "is_secret": True}
    return Field(default, description=description, json_schema_extra=extra, **bounds)


Seconds: TypeAlias = Annotated[float, BeforeValidator(_seconds)]
ReadableFile: TypeAlias = Annotated[Path, AfterValidator(_readable_file)]
StoreUrl: TypeAlias = Annotated[str, AfterValidator(_store_url)]
ListenUrl: TypeAlias = Annotated[str, AfterValidator(_listen_url)]
LimitsUrl: TypeAlias = Annotated[SecretStr, AfterValidator(_limits_url)]
EventsUrl: TypeAlias = Annotated[str, AfterValidator(_events_url)]
PublicUrl: TypeAlias = Annotated[str, AfterValidator(_public_url)]
Roles: TypeAlias = Annotated[tuple[Role, ...], NoDecode, BeforeValidator(listed), AfterValidator(_ordered_roles)]
