"""Texts from handlers made fit to store: no control characters, no half surrogate pairs, bounded."""

import re
import traceback

from coatcheck.core import limits

_NOT_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_NOT_IN_A_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_line(text: str, chars_max: int) -> str:
    """The text on one line of at most `chars_max` characters; what is cut off shows as an ellipsis."""
    line = _SURROGATES.sub("\ufffd", _NOT_IN_A_LINE.sub(" ", text[: 4 * chars_max])).strip()
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


def operator_detail(error: BaseException) -> str:
    """The exception's text and traceback, for operators only. A long one loses its beginning."""
    try:
        shown = error.__traceback__
        if shown is not None:
            # The outermost frame is the runner's own.
            shown = shown.tb_next
        text = "".join(traceback.format_exception(type(error), error, shown))
    except Exception:
        text = f"{type(error).__name__} (its text cannot be shown)"
    chars_max = limits.OPERATOR_DETAIL_CHARS_MAX
    tail = text if len(text) <= chars_max else "…" + text[1 - chars_max :]
    return _SURROGATES.sub("\ufffd", _NOT_IN_A_TEXT.sub("\ufffd", tail))
