"""File: a result that is not JSON."""

import re
from dataclasses import dataclass
from pathlib import Path

from coatcheck.core import limits

_CONTENT_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(; ?[A-Za-z0-9-]+=[A-Za-z0-9_.-]+)*")


@dataclass(frozen=True, slots=True)
class File:
    """Bytes with a content type, as the result of a job.

    Args:
        content: the bytes, or the path of a file to read when the handler has returned.
        content_type: a media type such as `application/pdf`.
        name: the file name a browser saves it under, at most 200 characters, without a path.

    Raises:
        ValueError: the content type or the name is not one.
    """

    content: bytes | Path
    content_type: str = "application/octet-stream"
    name: str | None = None

    def __post_init__(self) -> None:
        too_long = len(self.content_type) > limits.CONTENT_TYPE_CHARS_MAX
        if too_long or not _CONTENT_TYPE.fullmatch(self.content_type):
            raise ValueError(f"{self.content_type!r} is not a media type such as 'application/pdf'")
        if self.name is not None and not _is_file_name(self.name):
            raise ValueError(f"{self.name!r} is not a file name of 1 to {limits.FILE_NAME_CHARS_MAX} characters")


def _is_file_name(name: str) -> bool:
    return 0 < len(name) <= limits.FILE_NAME_CHARS_MAX and name.isprintable() and not set(name) & set('/\\"')
