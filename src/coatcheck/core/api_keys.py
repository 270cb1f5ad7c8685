"""API keys as text: `cck_`, the id that a key is known by, `_`, and its secret.

The secret is random enough that one SHA-256 of the whole key is a safe thing to keep of it.
"""

import hashlib
import re
from typing import Final

KEY_PREFIX: Final = "cck_"
KEY_ID_CHARS: Final = 12
KEY_SECRET_CHARS: Final = 43

_KEY = re.compile(rb"cck_([0-9A-Za-z]{12})_[0-9A-Za-z]{40,128}")


def make_key(key_id: str, secret: str) -> str:
    """The key of an id and a secret, both of ASCII letters and digits.

    Raises:
        ValueError: they make no key.
    """
    key = f"{KEY_PREFIX}{key_id}_{secret}"
    if key_id_of(key.encode()) != key_id:
        raise ValueError("a key needs an id of 12 letters or digits and a secret of 40 to 128")
    return key


def key_id_of(key: bytes) -> str | None:
    """The id in what may be a key; None if it is none."""
    match = _KEY.fullmatch(key)
    return None if match is None else match[1].decode("ascii")


def digest_of(key: bytes) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key).hexdigest()
