"""What schemas of our own answers are made of."""

from typing import Final

from coatcheck.core.ids import JOB_ID_PATTERN
from coatcheck.http.openapi_schemas import Schema

JOB_ID: Final[Schema] = {
    "type": "string",
    "pattern": f"^{JOB_ID_PATTERN.pattern}$",
    "description": "Unguessable; ids sort by time of creation.",
}
_INSTANT_PATTERN = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
INSTANT: Final[Schema] = {"type": "string", "format": "date-time", "pattern": _INSTANT_PATTERN}
URL: Final[Schema] = {"type": "string", "format": "uri-reference"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}


def text(description: str, chars_max: int | None = None) -> Schema:
    """A text."""
    bounds = {} if chars_max is None else {"maxLength": chars_max}
    return {"type": "string", **bounds, "description": description}


def or_null(schema: Schema, description: str | None = None) -> Schema:
    """The same, or null."""
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        both = {**schema, "type": [schema["type"], "null"]}
    else:
        both = {"anyOf": [schema, {"type": "null"}]}
    return both if description is None else {**both, "description": description}


def moment(description: str) -> Schema:
    """An instant."""
    return {**INSTANT, "description": description}


def closed(description: str, properties: dict[str, Schema], required: list[str] | None = None) -> Schema:
    """An object whose fields are always there, but for those left out of `required`."""
    return {
        "type": "object",
        "description": description,
        "required": list(properties) if required is None else required,
        "properties": properties,
    }
