"""Effects as they are recorded: JSON, bounded, and read back the same way on the first run and on every later one."""

from functools import lru_cache
from typing import Any

import pydantic_core
from pydantic import TypeAdapter

from coatcheck.core import limits


def check_effect_name(name: str) -> None:
    """Refuse what cannot name an effect.

    Raises:
        ValueError: the name is not 1 to 128 printable characters.
    """
    if not isinstance(name, str) or not 0 < len(name) <= limits.EFFECT_NAME_CHARS_MAX or not name.isprintable():
        raise ValueError(f"An effect's name must be 1 to {limits.EFFECT_NAME_CHARS_MAX} printable characters.")


def encode_effect(value: Any, returns: Any) -> bytes:
    """The value as JSON bytes, through the type `returns` unless that is None.

    Raises:
        ValueError: the value is not of that type, is no JSON, or is too large.
    """
    try:
        if returns is None:
            body = pydantic_core.to_json(value, inf_nan_mode="constants")
        else:
            body = _adapter(returns).dump_json(value, by_alias=True, warnings="error")
    except pydantic_core.PydanticSerializationError as error:
        raise ValueError(f"An effect must return what JSON can hold: {error}") from error
    if len(body) > limits.EFFECT_BYTES_MAX:
        raise ValueError(
            f"An effect's value may have {limits.EFFECT_BYTES_MAX} bytes of JSON; this one has {len(body)}."
        )
    return body


def decode_effect(body: bytes, returns: Any) -> Any:
    """The recorded value, as the type `returns` unless that is None."""
    if returns is None:
        return pydantic_core.from_json(body)
    return _adapter(returns).validate_json(body)


def _adapter(returns: Any) -> TypeAdapter[Any]:
    try:
        return _cached_adapter(returns)
    except TypeError:
        # Annotations with unhashable parts cannot be cached.
        return TypeAdapter(returns)


@lru_cache(maxsize=256)
def _cached_adapter(returns: Any) -> TypeAdapter[Any]:
    return TypeAdapter(returns)
