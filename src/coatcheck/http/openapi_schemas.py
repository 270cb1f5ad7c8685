"""The schemas of the OpenAPI document: users' types beside our own, each under a name of its own.

Two types of one name share a component when their schemas are equal; otherwise the later one is named after the
operation it belongs to.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema

Schema: TypeAlias = dict[str, Any]

REF_PREFIX = "#/components/schemas/"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")
_WORD = re.compile(r"[a-z0-9]+")


class _ReadableSchema(GenerateJsonSchema):
    """Pydantic's schema without derived titles. What JSON Schema cannot say becomes 'anything', never an error."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - Pydantic's own declaration

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def handle_invalid_for_json_schema(self, schema: CoreSchema, error_info: str) -> JsonSchemaValue:
        return {"description": "A value that JSON Schema has no words for."}


def ref(name: str) -> Schema:
    """A reference to the component schema of this name."""
    return {"$ref": REF_PREFIX + name}


def pascal(name: str) -> str:
    """An operation's name as part of a component's: `report-jobs` becomes `ReportJobs`."""
    return "".join(word.capitalize() for word in _WORD.findall(name))


def resolve(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    """The schema that a reference, or a chain of them, stands for; {} where the chain leads nowhere."""
    for _ in range(len(schemas) + 1):
        if "$ref" not in schema:
            return schema
        schema = schemas.get(schema["$ref"].removeprefix(REF_PREFIX), {})
    return {}


class SchemaBook:
    """The component schemas gathered so far."""

    def __init__(self) -> None:
        self._schemas: dict[str, Schema] = {}

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """All components by name, in the order they came."""
        return self._schemas

    def add(self, name: str, schema: Schema) -> Schema:
        """Keep a schema under this name, or under a numbered one where it is taken; returns a reference to it."""
        free = self._free(name, set())
        self._schemas[free] = schema
        return ref(free)

    def add_type(self, adapter: TypeAdapter[Any], mode: Literal["validation", "serialization"], owner: str) -> Schema:
        """Keep the schemas of a type and of all it refers to; returns the type's own schema or a reference to it."""
        whole = adapter.json_schema(ref_template=REF_PREFIX + "{model}", mode=mode, schema_generator=_ReadableSchema)
        definitions: dict[str, Schema] = whole.pop("$defs", {})
        if "title" in whole:
            name = _NOT_IN_A_NAME.sub("_", whole["title"]) or owner
            name = owner + name if name in definitions else name
            definitions[name], whole = whole, ref(name)
        names = self._names_for(definitions, owner)
        for name, schema in definitions.items():
            self._schemas[names[name]] = _renamed(schema, names)
        own: Schema = _renamed(whole, names)
        return own

    def resolve(self, schema: Schema) -> Schema:
        """The schema that a reference, or a chain of them, stands for."""
        return resolve(schema, self._schemas)

    def _names_for(self, definitions: Mapping[str, Schema], owner: str) -> dict[str, str]:
        # A renamed definition changes the ones that refer to it, which may then differ from their namesakes too.
        names = {name: name for name in definitions}
        while True:
            clashing = [
                name
                for name, schema in definitions.items()
                if names[name] == name and self._schemas.get(name, schema) != _renamed(schema, names)
            ]
            if not clashing:
                return names
            for name in clashing:
                names[name] = self._free(owner + name, {*definitions, *names.values()})

    def _free(self, name: str, taken: set[str]) -> str:
        candidate, number = name, 1
        while candidate in self._schemas or candidate in taken:
            number += 1
            candidate = f"{name}{number}"
        return candidate


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {key: _renamed(member, names) for key, member in value.items()}
        case list():
            return [_renamed(member, names) for member in value]
        case str() if value.startswith(REF_PREFIX):
            name = value.removeprefix(REF_PREFIX)
            return REF_PREFIX + names.get(name, name)
        case _:
            return value
