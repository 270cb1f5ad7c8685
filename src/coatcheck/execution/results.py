"""What a handler returned, as the bytes a store keeps: JSON of the declared type, or a File."""

import math
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError

from coatcheck.app import Operation
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.files import File
from coatcheck.execution.frames import Raised, Returned, Verdict
from coatcheck.execution.texts import operator_detail

JSON_TYPE = "application/json"
# What Pydantic writes for NaN and the infinities, and for much else.
_NUMBER_MARKS = (b"null", b"NaN", b"Infinity")


def is_read_from_disk(value: Any) -> bool:
    """Whether encoding the value reads a file."""
    return isinstance(value, File) and isinstance(value.content, Path)


def encode_result(operation: Operation, value: Any) -> Verdict:
    """The verdict on a returned value. Raises what a serializer of the user's own raises."""
    if isinstance(value, File):
        return _encode_file(operation, value)
    if operation.result is None:
        return _not_storable("The work did not return the file it declares.", f"returned {type(value).__name__}")
    try:
        body = operation.result.dump_json(value, by_alias=True, warnings="error")
        if any(mark in body for mark in _NUMBER_MARKS) and _holds_no_number(operation.result.dump_python(value)):
            return _not_storable("The result holds a number that JSON cannot hold.", "NaN or an infinity in the result")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        return _not_storable("The result is not of the type its operation declares.", operator_detail(error))
    return _bounded(operation, Returned(JSON_TYPE, body, None))


def _holds_no_number(value: Any) -> bool:
    """Whether there is a NaN or an infinity anywhere in plain values."""
    level = [value]
    while level:
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            return True
        mappings = (item.values() for item in level if isinstance(item, dict))
        sequences = (item for item in level if isinstance(item, (list, tuple, set, frozenset)))
        level = [child for children in (*mappings, *sequences) for child in children]
    return False


def _encode_file(operation: Operation, file: File) -> Verdict:
    if not operation.returns_file:
        return _not_storable(
            "The result is not of the type its operation declares.", "returned a File that the annotation does not name"
        )
    if not isinstance(file.content, Path):
        return _bounded(operation, Returned(file.content_type, bytes(file.content), file.name))
    try:
        with file.content.open("rb") as stream:
            # One byte more than may be kept tells a file that is too large, however large it is.
            body = stream.read(operation.policy.result_bytes_max + 1)
    except OSError as error:
        return _not_storable("The file that is the result cannot be read.", operator_detail(error))
    return _bounded(operation, Returned(file.content_type, body, file.name))


def _bounded(operation: Operation, returned: Returned) -> Verdict:
    bytes_max = operation.policy.result_bytes_max
    if len(returned.body) <= bytes_max:
        return returned
    detail = f"The result has more than the {bytes_max} bytes its operation may keep."
    return Raised(ErrorCategory.RESULT_TOO_LARGE, detail, False, None, None)


def _not_storable(detail: str, operator_text: str) -> Raised:
    return Raised(ErrorCategory.RESULT_NOT_STORABLE, detail, False, None, operator_text)
