"""File: a result that is not JSON."""

from pathlib import Path

import pytest

from coatcheck.core.files import File
from coatcheck.core.limits import CONTENT_TYPE_CHARS_MAX, FILE_NAME_CHARS_MAX


@pytest.mark.parametrize(
    "content_type",
    [
        "application/pdf",
        "text/csv; charset=utf-8",
        "text/plain;charset=utf-8",
        "image/svg+xml",
        "application/vnd.a.b+json",
    ],
)
def test_these_are_media_types(content_type: str) -> None:
    assert File(b"", content_type).content_type == content_type


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "pdf",
        "application/",
        "/pdf",
        "a/b\r\nX-Evil: 1",
        "a/b\n",
        "a/b; charset",
        "a/b, c/d",
        "ä/b",
        "a b/c",
        "a/" + "b" * CONTENT_TYPE_CHARS_MAX,
    ],
)
def test_these_are_not(content_type: str) -> None:
    with pytest.raises(ValueError, match="is not a media type"):
        File(b"", content_type)


@pytest.mark.parametrize("name", ["report.pdf", "Bücher ☂.csv", "a", "a" * FILE_NAME_CHARS_MAX, "..pdf"])
def test_these_are_file_names(name: str) -> None:
    assert File(Path("somewhere"), "text/csv", name).name == name


@pytest.mark.parametrize("name", ["", "a/b", "..\\b", 'a"b', "a\nb", "a\r\nb", "\x00", "a" * (FILE_NAME_CHARS_MAX + 1)])
def test_these_are_not_file_names(name: str) -> None:
    with pytest.raises(ValueError, match="is not a file name"):
        File(b"", "text/csv", name)


def test_a_file_needs_no_name() -> None:
    assert File(b"x") == File(b"x", "application/octet-stream", None)
