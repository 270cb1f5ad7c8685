"""Names that operators give, which everybody who reads a list or a log must be able to tell apart."""

import re
import unicodedata
from typing import Final

from coatcheck.core import limits
from coatcheck.core.quotas import EACH

OPERATION_NAME: Final = "[a-z][a-z0-9_-]{0,62}"
_OPERATION: Final = re.compile(OPERATION_NAME)
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_NO_NAMES: Final = frozenset({EACH, ".", ".."})


def tenant_name_fault(name: str) -> str | None:
    """What is wrong with a tenant's name; None: nothing.

    What two names could hide their difference behind is refused: white space around it, characters that nobody sees,
    and forms that look like others. So is what would read as a path or as a pattern.
    """
    if not name or len(name) > limits.TENANT_CHARS_MAX:
        return f"A tenant's name has 1 to {limits.TENANT_CHARS_MAX} characters."
    if name in _NO_NAMES:
        return f"{name!r} is no name for a tenant."
    if "/" in name:
        return "A tenant's name has no slash."
    return _look_fault(name)


def label_fault(label: str) -> str | None:
    """What is wrong with a key's label, which may be empty; None: nothing."""
    if len(label) > limits.KEY_LABEL_CHARS_MAX:
        return f"A label has at most {limits.KEY_LABEL_CHARS_MAX} characters."
    return _look_fault(label)


def is_operation_name(name: str) -> bool:
    """Whether an operation can have this name."""
    return _OPERATION.fullmatch(name) is not None


def _look_fault(text: str) -> str | None:
    if text != text.strip():
        return "There is white space around it."
    if any(unicodedata.category(char) in _UNSEEN for char in text):
        return "It has a character that nobody sees, such as a control character."
    if unicodedata.normalize("NFKC", text) != text:
        return "It has a character that looks like another; write it in its plain form (Unicode NFKC)."
    return None
