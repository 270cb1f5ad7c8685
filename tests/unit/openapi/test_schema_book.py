"""Types of one name share a component only where they are the same."""

from typing import Annotated, Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import BaseModel, Field, TypeAdapter, create_model

from coatcheck.app import App
from coatcheck.http.openapi import build_openapi
from coatcheck.http.openapi_examples import ExampleMaker, NoExample
from coatcheck.http.openapi_schemas import SchemaBook, ref

from .bookshop import make_settings


def add(book: SchemaBook, annotation: Any, owner: str) -> dict[str, Any]:
    return book.add_type(TypeAdapter(annotation), "validation", owner)


def test_equal_types_share_a_component() -> None:
    book = SchemaBook()
    assert add(book, create_model("Line", units=int), "A") == ref("Line")
    assert add(book, create_model("Line", units=int), "B") == ref("Line")
    assert list(book.schemas) == ["Line"]


def test_other_types_of_the_same_name_are_named_after_their_owner() -> None:
    book = SchemaBook()
    add(book, create_model("Line", units=int), "A")
    assert add(book, create_model("Line", units=str), "B") == ref("BLine")
    assert book.schemas["Line"]["properties"]["units"] == {"type": "integer"}
    assert book.schemas["BLine"]["properties"]["units"] == {"type": "string"}


def test_what_refers_to_a_renamed_type_is_renamed_with_it() -> None:
    book = SchemaBook()
    for owner, line in (("A", create_model("Line", units=int)), ("B", create_model("Line", units=str))):
        fields: dict[str, Any] = {"line": line}
        add(book, create_model("Order", **fields), owner)
    assert book.schemas["Order"]["properties"]["line"] == ref("Line")
    assert book.schemas["BOrder"]["properties"]["line"] == ref("BLine")


def test_a_new_name_never_meets_a_name_that_is_taken() -> None:
    book = SchemaBook()
    book.add("BLine", {"type": "null"})
    add(book, create_model("Line", units=int), "A")
    assert add(book, create_model("Line", units=str), "B") == ref("BLine2")


class Tree(BaseModel):
    trees: list["Tree"] = []


def test_a_type_that_contains_itself_is_a_component() -> None:
    book = SchemaBook()
    assert add(book, Tree, "A") == ref("Tree")
    assert book.schemas["Tree"]["properties"]["trees"]["items"] == ref("Tree")


def test_a_user_may_call_a_type_as_ours_are_called() -> None:
    app = App("bookshop")
    job: Any = create_model("Job", title=str)

    def handle(request: Any, job: Any) -> Any:
        raise NotImplementedError

    handle.__annotations__.update(request=job, **{"return": job})
    app.operation("work")(handle)
    document = build_openapi(app, make_settings())
    OpenAPIV31SpecValidator(document).validate()
    schemas = document["components"]["schemas"]
    assert "status" in schemas["Job"]["properties"]
    assert list(schemas["WorkRequestJob"]["properties"]) == ["title"]


class Opaque:
    pass


def test_a_type_without_a_json_schema_is_anything() -> None:
    book = SchemaBook()
    model: Any = create_model("Holder", __config__={"arbitrary_types_allowed": True}, held=(Opaque, ...))
    add(book, model, "A")
    assert "type" not in book.schemas["Holder"]["properties"]["held"]


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[int, Field(gt=5, lt=8)],
        Annotated[int, Field(ge=10, multiple_of=10)],
        Annotated[float, Field(gt=0, lt=1)],
        Annotated[str, Field(min_length=12, max_length=14)],
        Annotated[str, Field(pattern="^[A-Z]{3}$")],
        Annotated[list[int], Field(min_length=3, max_length=3)],
        tuple[int, str],
        dict[str, list[int]],
        int | None,
        Tree,
    ],
    ids=str,
)
def test_examples_are_valid(annotation: Any) -> None:
    book = SchemaBook()
    schema = add(book, annotation, "A")
    example = ExampleMaker(book).make(schema)
    OAS31Validator({**schema, "components": {"schemas": dict(book.schemas)}}).validate(example)
    TypeAdapter(annotation).validate_python(example)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string", "pattern": "^never-[0-9]{17}$"},
        {"type": "string", "pattern": "(?<broken"},
        {"type": "string", "format": "unheard-of"},
        {"type": "object", "not": {}},
        {"type": "array", "minItems": 2, "uniqueItems": True, "items": {"type": "boolean"}},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "object", "required": ["a"], "properties": {"a": {}}},
    ],
    ids=str,
)
def test_there_is_no_example_where_none_is_sure(schema: dict[str, Any]) -> None:
    with pytest.raises(NoExample):
        ExampleMaker(SchemaBook()).make(schema)
