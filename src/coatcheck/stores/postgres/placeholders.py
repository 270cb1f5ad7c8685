"""The same statement for drivers that name parameters in another way."""

import re

_NUMBERED = re.compile(r"\$\d+")


def with_percent_s(statement: str) -> str:
    """A statement that names its values $1, $2 and so on, in this order and once each, with %s for each."""
    return _NUMBERED.sub("%s", statement)
