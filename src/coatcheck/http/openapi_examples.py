"""Example values made from a schema, or none at all where nobody can be sure that an example would be valid."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from coatcheck.http.openapi_schemas import Schema, SchemaBook

_DEPTH_MAX = 6
_TEXT_CHARS_MAX = 200
_UNSURE = ("not", "if", "patternProperties", "dependentRequired", "dependentSchemas", "contains", "propertyNames")
_FORMATS: Final[Mapping[str, str]] = {
    "date-time": "2026-03-14T09:26:53Z",
    "date": "2026-03-14",
    "time": "09:26:53Z",
    "duration": "PT90S",
    "email": "reader@example.org",
    "uri": "https://example.org/",
    "uuid": "5f0c3a52-3f0e-4c67-9a53-0c9c2d3b1f10",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}
_TEXTS = ("text", "north", "abc", "ABC", "a1", "1", "12", "2026", "2026-03", "A1", "en", "EUR")


class NoExample(Exception):
    """The schema says more than this module understands, or refers to itself without an end."""


class ExampleMaker:
    """Makes examples for schemas that refer into one book."""

    def __init__(self, book: SchemaBook) -> None:
        self._book = book

    def make(self, schema: Schema, name: str = "text", depth: int = 0) -> Any:
        """A value that fits the schema. `name`: what the value is called where it stands, tried for texts.

        Raises:
            NoExample: none can be made with certainty.
        """
        schema = self._book.resolve(schema)
        if depth > _DEPTH_MAX or any(keyword in schema for keyword in _UNSURE):
            raise NoExample
        given = _given(schema)
        if given:
            return given[0]
        if "allOf" in schema:
            return self._made_of_all(schema, name, depth)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._made_of_any(schema[keyword], name, depth)
        return self._made_by_type(schema, name, depth)

    def _made_by_type(self, schema: Schema, name: str, depth: int) -> Any:
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "string":
                return _first(_texts(schema, name), lambda text: _fits_text(text, schema))
            case "integer":
                return _first(_numbers(schema), lambda number: _fits_number(number, schema))
            case "number":
                return _first([*_numbers(schema), 0.5], lambda number: _fits_number(number, schema))
            case "boolean":
                return True
            case "null":
                return None
            case _:
                raise NoExample

    def _made_of_all(self, schema: Schema, name: str, depth: int) -> Any:
        if len(schema["allOf"]) != 1 or "properties" in schema:
            raise NoExample
        return self.make(schema["allOf"][0], name, depth + 1)

    def _made_of_any(self, choices: list[Schema], name: str, depth: int) -> Any:
        for choice in sorted(choices, key=lambda choice: choice.get("type") == "null"):
            try:
                return self.make(choice, name, depth + 1)
            except NoExample:
                continue
        raise NoExample

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        required = schema.get("required", [])
        made: dict[str, Any] = {}
        for name, member in schema.get("properties", {}).items():
            try:
                made[name] = self.make(member, name, depth + 1)
            except NoExample:
                if name in required:
                    raise
        if len(made) < schema.get("minProperties", 0) or not set(required) <= set(made):
            raise NoExample
        return made

    def _array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        made = [self.make(member, name, depth + 1) for member in schema.get("prefixItems", [])]
        least = schema.get("minItems", 0)
        if isinstance(schema.get("items"), dict):
            try:
                item = self.make(schema["items"], name, depth + 1)
                made += [item] * min(max(least - len(made), 0 if made else 1), schema.get("maxItems", 100))
            except NoExample:
                if least > len(made):
                    raise
        if len(made) < least or (schema.get("uniqueItems") and len(made) > 1):
            raise NoExample
        return made


def _given(schema: Schema) -> list[Any]:
    if schema.get("examples"):
        return [schema["examples"][0]]
    for keyword in ("example", "const"):
        if keyword in schema:
            return [schema[keyword]]
    if schema.get("default") is not None:
        return [schema["default"]]
    return list(schema.get("enum", []))[:1]


def _first(candidates: list[Any], fits: Callable[[Any], bool]) -> Any:
    for candidate in candidates:
        if fits(candidate):
            return candidate
    raise NoExample


def _texts(schema: Schema, name: str) -> list[str]:
    if "format" in schema:
        return [_FORMATS[schema["format"]]] if schema["format"] in _FORMATS else []
    least = min(schema.get("minLength", 0), _TEXT_CHARS_MAX)
    return [name, *_TEXTS, *((text * least)[:least] for text in ("1234567890", "abcdefghij"))]


def _fits_text(text: str, schema: Schema) -> bool:
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", _TEXT_CHARS_MAX):
        return False
    try:
        return "pattern" not in schema or re.search(schema["pattern"], text) is not None
    except re.error:
        return False


def _numbers(schema: Schema) -> list[Any]:
    bounds = [schema[key] for key in ("minimum", "maximum", "multipleOf") if key in schema]
    inside = [schema["exclusiveMinimum"] + 1] if "exclusiveMinimum" in schema else []
    below = [schema["exclusiveMaximum"] - 1] if "exclusiveMaximum" in schema else []
    numbers = [1, *inside, *bounds, *below, 0]
    return [number for number in numbers if schema.get("type") == "number" or isinstance(number, int)]


def _fits_number(number: float, schema: Schema) -> bool:
    is_inside = schema.get("minimum", number) <= number <= schema.get("maximum", number)
    is_between = schema.get("exclusiveMinimum", number - 1) < number < schema.get("exclusiveMaximum", number + 1)
    return bool(is_inside and is_between and number % schema.get("multipleOf", number or 1) == 0)
