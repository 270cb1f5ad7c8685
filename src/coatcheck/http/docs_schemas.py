"""Schemas as people read them: a type in words, its bounds, and an object's fields as nested lists."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from coatcheck.http.docs_markup import Child, Markup, element, inline, joined
from coatcheck.http.openapi_schemas import REF_PREFIX, Schema, resolve

_DEPTH_MAX: Final = 5
_MADE_OF_PARTS: Final = frozenset({"properties", "allOf", "anyOf", "oneOf", "items", "additionalProperties"})
_NOUNS: Final = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "object"}


@dataclass(frozen=True, slots=True)
class SchemaView:
    """Shows schemas that refer into one document's components.

    What stands out in a request is what must be sent, in an answer what may be missing.
    """

    schemas: Mapping[str, Schema]
    are_answers: bool = False

    def type_text(self, schema: Schema) -> str:
        """The type in a few words, such as `array of LowStock` or `text or null`."""
        if "$ref" in schema:
            name: str = schema["$ref"].removeprefix(REF_PREFIX)
            target = resolve(schema, self.schemas)
            return self.type_text(target) if _MADE_OF_PARTS.isdisjoint(target) else name
        if "allOf" in schema:
            return self.type_text(schema["allOf"][0])
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return " or ".join(dict.fromkeys(self.type_text(choice) for choice in schema[keyword]))
        if isinstance(schema.get("type"), list):
            return " or ".join(self.type_text({**schema, "type": member}) for member in schema["type"])
        return self._simple_type(schema)

    def _simple_type(self, schema: Schema) -> str:
        kind = schema.get("type")
        if kind == "array" and "prefixItems" in schema:
            return f"[{', '.join(self.type_text(member) for member in schema['prefixItems'])}]"
        if kind == "array":
            return f"array of {self.type_text(schema.get('items') or {})}"
        if isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
            return f"map of text to {self.type_text(schema['additionalProperties'])}"
        if kind is None:
            return "anything" if "const" not in schema and "enum" not in schema else "value"
        if kind == "string" and "format" in schema:
            return str(schema["format"])
        return _NOUNS.get(kind, str(kind))

    def fields(self, schema: Schema, within: tuple[str, ...] = ()) -> Markup | None:
        """The fields of an object, or of the objects inside; None where there are none to show."""
        merged = self._merged(schema)
        if "properties" not in merged or len(within) > _DEPTH_MAX:
            return None
        required = merged.get("required", [])
        rows = [
            self.row(name, member, self._note(name in required), within)
            for name, member in merged["properties"].items()
        ]
        return element("ul", rows, class_="fields")

    def _note(self, is_required: bool) -> str | None:
        if self.are_answers:
            return None if is_required else "optional"
        return "required" if is_required else None

    def row(self, name: str, schema: Schema, note: str | None = None, within: tuple[str, ...] = ()) -> Markup:
        """One named value: its type, its description, its bounds and what is inside it."""
        described = schema.get("description") or resolve(schema, self.schemas).get("description", "")
        return element(
            "li",
            element(
                "div",
                element("code", name, class_="name"),
                element("span", self.type_text(schema), class_="type"),
                element("span", note, class_="note") if note else None,
                class_="head",
            ),
            element("p", inline(described)) if described else None,
            self.bounds(schema),
            self.inside(schema, within),
        )

    def bounds(self, schema: Schema) -> Markup | None:
        """What the schema allows of its type."""
        merged = self._merged(schema)
        for choice in merged.get("anyOf", []):
            if choice.get("type") != "null":
                merged = {**self._merged(choice), **merged}
        parts = [*_choices(merged), *_ranges(merged)]
        return element("p", joined(parts), class_="bounds") if parts else None

    def inside(self, schema: Schema, within: tuple[str, ...] = ()) -> Child:
        """The fields of the objects that a value is made of, each behind a summary, but for those it stands in."""
        shown: list[Child] = []
        for name, inner in self._objects(schema, frozenset(within)):
            fields = self.fields(inner, (*within, name))
            if fields is not None:
                shown.append(element("details", element("summary", "Fields of ", element("code", name)), fields))
        return shown

    def _objects(self, schema: Schema, seen: frozenset[str]) -> list[tuple[str, Schema]]:
        """The object schemas that a value of this schema is made of, with their names."""
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(REF_PREFIX)
            target = resolve(schema, self.schemas)
            if name in seen:
                return []
            is_object = "properties" in target or "allOf" in target
            return [(name, target)] if is_object else self._objects(target, seen | {name})
        inner = [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("prefixItems", [])]
        inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
        found = [("it", schema)] if "properties" in schema else []
        return [*found, *(pair for member in inner for pair in self._objects(member, seen))]

    def _merged(self, schema: Schema) -> Schema:
        """The schema with references followed and `allOf` laid over each other, later members on top."""
        merged = dict(resolve(schema, self.schemas))
        for part in merged.pop("allOf", []):
            layer = self._merged(part)
            properties = dict(merged.get("properties", {}))
            for name, member in layer.pop("properties", {}).items():
                properties[name] = {**properties.get(name, {}), **member}
            required = [*merged.get("required", []), *layer.pop("required", [])]
            merged = {**layer, **merged, "required": required}
            if properties:
                merged["properties"] = properties
        return merged


def _choices(schema: Schema) -> list[Child]:
    parts: list[Child] = []
    if "const" in schema:
        parts.append(["always ", _value(schema["const"])])
    elif "enum" in schema:
        parts.append([[_value(value), " "] for value in schema["enum"]])
    if schema.get("default") is not None:
        parts.append(["default ", _value(schema["default"])])
    return [element("span", part) for part in parts]


def _ranges(schema: Schema) -> list[Child]:
    texts = [
        _range(schema.get("minimum"), schema.get("maximum"), ""),
        _range(schema.get("minLength"), schema.get("maxLength"), " characters"),
        _range(schema.get("minItems"), schema.get("maxItems"), " items"),
        f"more than {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else None,
        f"less than {schema['exclusiveMaximum']}" if "exclusiveMaximum" in schema else None,
        f"a multiple of {schema['multipleOf']}" if "multipleOf" in schema else None,
    ]
    parts: list[Child] = [element("span", text) for text in texts if text is not None]
    if "pattern" in schema:
        parts.append(element("span", "matches ", element("code", schema["pattern"])))
    return parts


def _range(least: float | None, most: float | None, unit: str) -> str | None:
    match least, most:
        case None, None:
            return None
        case None, most_known:
            return f"at most {most_known:,}{unit}"
        case least_known, None:
            return f"at least {least_known:,}{unit}" if least_known else None
        case _:
            return f"{least:,} to {most:,}{unit}"


def _value(value: Any) -> Markup:
    text = (
        value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) or value is None else value
    )
    return element("code", "null" if value is None else str(text))
