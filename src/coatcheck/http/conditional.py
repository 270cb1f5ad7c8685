"""Conditional reads: entity tags compared weakly (RFC 9110, section 13.1.2), since gateways weaken them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from coatcheck.core import limits

_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


@dataclass(frozen=True, slots=True)
class Condition:
    """The tags of If-None-Match. `is_any`: it is `*`."""

    tags: frozenset[str] = frozenset()
    is_any: bool = False

    def matches(self, etag: str) -> bool:
        """Whether the client holds this version already."""
        return self.is_any or etag in self.tags

    def __bool__(self) -> bool:
        return self.is_any or bool(self.tags)


UNCONDITIONAL = Condition()


def read_condition(values: Sequence[bytes]) -> Condition:
    """Read all If-None-Match headers as one list; what is no tag is as if not there."""
    if not values:
        return UNCONDITIONAL
    value = b",".join(values)
    return _read_short(value) if len(value) <= limits.HEADER_VALUE_BYTES_MAX else _read(value)


def _read(value: bytes) -> Condition:
    text = value.decode("latin-1")
    if text.strip(" \t") == "*":
        return Condition(is_any=True)
    return Condition(frozenset(_TAG.findall(text)))


# Clients that ask again and again hold one of few versions.
_read_short = lru_cache(maxsize=256)(_read)
