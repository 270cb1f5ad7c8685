"""Pydantic's findings as faults of the body that was sent: real JSON Pointers, in a bounded list."""

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from coatcheck.core import limits
from coatcheck.core.jsontext import Json
from coatcheck.core.problems import FieldError

_MISSING = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"}
)


def faults_of(error: ValidationError, body: Json) -> Sequence[FieldError]:
    """What is wrong with `body`, each fault once, at most INPUT_ERRORS_LISTED_MAX of them."""
    count = error.error_count()
    # Reading faults costs memory and time for each; a body of nothing but faults must not buy that.
    if count > limits.INPUT_ERRORS_READ_MAX:
        return [FieldError("", f"The body has {count} faults, too many to list.")]
    findings = error.errors(include_url=False, include_context=False, include_input=False)
    faults = dict.fromkeys(_fault(finding, body) for finding in findings)
    return list(faults)[: limits.INPUT_ERRORS_LISTED_MAX]


def _fault(finding: ErrorDetails, body: Json) -> FieldError:
    is_unknown = finding["type"] == "extra_forbidden"
    detail = "This member is not known." if is_unknown else finding["msg"][: limits.ERROR_DETAIL_CHARS_MAX]
    return FieldError(_pointer(finding["loc"], body, finding["type"] in _MISSING), detail)


def _pointer(loc: Sequence[int | str], body: Json, is_missing: bool) -> str:
    """Follow `loc` through the body, leaving out what names a branch of a union and no place in the body.

    The last step of a missing member is kept: it points where the member ought to stand.
    """
    pointer, value = "", body
    for position, step in enumerate(loc):
        if isinstance(value, dict) and str(step) in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        elif not (is_missing and position == len(loc) - 1 and isinstance(value, (dict, list))):
            continue
        pointer += "/" + escape_step(str(step))
    return pointer


def escape_step(step: str) -> str:
    """One step of a JSON Pointer (RFC 6901, section 3)."""
    return step.replace("~", "~0").replace("/", "~1")
