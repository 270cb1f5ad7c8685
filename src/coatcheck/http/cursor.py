"""Where a list goes on: opaque to its reader, and good only for the list it came from."""

import base64
import binascii
import hashlib
import hmac

from coatcheck.core import limits
from coatcheck.core.ids import is_job_id
from coatcheck.core.problems import Refused
from coatcheck.store.records import JobQuery

_DIGEST_BYTES = 12


def make_cursor(query: JobQuery, last_job_id: str) -> str:
    """The cursor of what follows `last_job_id` in this query."""
    position = last_job_id.encode("ascii")
    return base64.urlsafe_b64encode(_digest(query, last_job_id) + position).decode("ascii").rstrip("=")


def read_cursor(query: JobQuery, cursor: str) -> str:
    """The id of the last job before the cursor. Which page size the query has does not matter.

    Raises:
        Refused: `invalid-cursor`.
    """
    refused = Refused("invalid-cursor", "The cursor does not belong to this list; follow the next link as it is given.")
    if len(cursor) > limits.CURSOR_CHARS_MAX or not cursor.isascii():
        raise refused
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = raw[_DIGEST_BYTES:].decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        raise refused from None
    # The cursor itself is compared too: base 64 spells some bytes in several ways.
    if not is_job_id(position) or not hmac.compare_digest(make_cursor(query, position), cursor):
        raise refused
    return position


def _digest(query: JobQuery, last_job_id: str) -> bytes:
    parts = ("cursor-1", query.tenant, query.operation or "", query.status or "", last_job_id)
    return hashlib.sha256("\x00".join(parts).encode("utf-8")).digest()[:_DIGEST_BYTES]
