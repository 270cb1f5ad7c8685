"""Server-sent events, read as the HTML standard says."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One event; a comment is an event of the type `comment`."""

    type: str
    id: int | None
    text: str

    @property
    def data(self) -> dict[str, Any]:
        body = json.loads(self.text)
        assert isinstance(body, dict), body
        return body


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """The events and comments of a stream, until it ends."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith(":"):
            yield Event("comment", None, line[1:].strip())
        elif line:
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
        else:
            if "data" in fields:
                ids = fields.get("id")
                yield Event(
                    fields.get("event", ["message"])[-1], int(ids[-1]) if ids else None, "\n".join(fields["data"])
                )
            fields = {}
