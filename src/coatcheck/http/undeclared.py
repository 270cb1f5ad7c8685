"""Jobs of operations that this build does not declare: an earlier build took them, or a newer one beside it.

They are read, cancelled and erased at the default path, which is the one their representation names. Nothing is handed
in there, and there is no list: what there is stands in the list of all operations.
"""

import re
from typing import Any, Final

from pydantic import TypeAdapter

from coatcheck.app import Operation
from coatcheck.core.ids import JOB_ID_PATTERN
from coatcheck.core.names import OPERATION_NAME
from coatcheck.core.policy import DEFAULT_POLICY

UNDECLARED_PATH: Final = "/v1/{operation}"
"""As metrics name it, whatever a client writes in the place of the name."""

_JOB_PATH: Final = re.compile(rf"(/v1/({OPERATION_NAME}))/({JOB_ID_PATTERN.pattern})(?:/([a-z-]+))?")
_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


def parse_job_path(path: str) -> tuple[Operation, str, str | None] | None:
    """The operation, the job id and the part that a path at a default place names; None: it is no such path."""
    match = _JOB_PATH.fullmatch(path)
    return None if match is None else (_operation_at(match[1], match[2]), match[3], match[4])


def _operation_at(path: str, name: str) -> Operation:
    return Operation(
        name=name,
        path=path,
        version="",
        summary=name,
        handler=_unknown,
        is_async=True,
        request=_ANYTHING,
        result=_ANYTHING,
        returns_file=True,
        policy=DEFAULT_POLICY,
    )


async def _unknown(request: Any, job: Any) -> None:
    raise NotImplementedError("nothing is handed in here")
