"""How many of each: enough for every day, or with BUGBANK_FULL=1 the counts and times of the bank itself."""

import os

FULL = os.environ.get("BUGBANK_FULL") == "1"


def scaled(everyday: int, full: int) -> int:
    """The count for this run."""
    return full if FULL else everyday
