"""Nothing a user can meet is missing from the reference: each name has a heading or a table row there."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

import coatcheck
from coatcheck import App, Job, Settings
from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.events import EventType
from coatcheck.core.problems import PROBLEMS
from coatcheck.core.states import Event, Status
from coatcheck.declaration import PolicyOptions, RetentionOptions
from coatcheck.execution.job import BlockingJob
from coatcheck.http.openapi import build_openapi
from coatcheck.http.openapi_schemas import Schema
from coatcheck.observe.metrics import METRICS
from coatcheck.settings import describe_settings

from .commands import commands, option_names_of
from .pages import DOCS, REFERENCE, ROOT, page, pages, reference_terms

_IDENTIFIER = re.compile(r"[a-z]+(?:_[a-z]+)+|[A-Z]+(?:_[A-Z]+)+")


class Input(BaseModel):
    branch: str


async def handler(request: Input, job: Job) -> None:
    """Do nothing."""


def test_settings() -> None:
    rows = describe_settings()
    assert _missing([row.name for row in rows], "settings.md") == []
    assert [row.env for row in rows if f"`{row.env}`" not in page(REFERENCE / "settings.md").text] == []


def test_problem_codes() -> None:
    assert _missing(PROBLEMS, "problems.md") == []


def test_error_categories() -> None:
    assert _missing(ErrorCategory, "problems.md") == []


def test_states_and_what_moves_them() -> None:
    assert _missing([*Status, *Event], "states.md") == []


def test_metrics() -> None:
    assert _missing([row.prometheus_name for row in METRICS], "metrics.md") == []


def test_event_types() -> None:
    assert _missing(EventType, "events.md") == []


def test_limits() -> None:
    assert _missing([name for name in vars(limits) if name.isupper()], "limits.md") == []


def test_options_of_an_operation() -> None:
    names = [*PolicyOptions.__annotations__, *RetentionOptions.__annotations__]
    assert _missing(names, "operation-options.md") == []


def test_commands_and_their_options() -> None:
    names = {name for path, command in commands() for name in (path, *option_names_of(command))}
    assert _missing(names - {"--help"}, "cli.md") == []


def test_routes() -> None:
    assert _missing(_routes(), "contract.md") == []


def test_fields_of_the_job() -> None:
    schemas = _openapi()["components"]["schemas"]
    assert _missing(schemas["Job"]["properties"], "contract.md") == []


def test_public_names() -> None:
    assert sorted(set(coatcheck.__all__) - reference_terms()) == []


def test_what_a_job_gives() -> None:
    names = [name for kind in (Job, BlockingJob) for name in dir(kind) if not name.startswith("_")]
    attributes = ["id", "attempt", "tenant", "operation", "correlation_id"]
    calls = {name for name in names if callable(getattr(Job, name, None))}
    terms = [f"job.{name}()" if name in calls else f"job.{name}" for name in [*names, *attributes]]
    assert _missing(terms, "job-api.md") == []


def test_fault_points() -> None:
    assert _missing(fault_points(), "fault-points.md") == []
    assert sorted(page(REFERENCE / "fault-points.md").terms - fault_points()) == [], "documented, but gone"


def test_decision_records_are_listed() -> None:
    index = page(DOCS / "decisions" / "README.md")
    listed = {href for href, _ in index.links}
    assert [path.name for path in (DOCS / "decisions").glob("0*.md") if path.name not in listed] == []


def test_pages_name_nothing_that_is_gone() -> None:
    """A setting, metric or limit that was renamed must not live on in a guide. Decision records are history."""
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    envs = {row.env for row in describe_settings()}
    gone = {
        f"{one.name}: {name}"
        for one in pages()
        if one.path.parent != DOCS / "decisions"
        for inline in one.tokens
        for child in inline.children or ()
        if child.type == "code_inline" and _IDENTIFIER.fullmatch(name := child.content)
        if name not in envs and name.removeprefix("coatcheck_").removesuffix("_total") not in code
    }
    assert sorted(gone) == []


def fault_points() -> frozenset[str]:
    """The names of all fault points the code passes."""
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=called) | ast.Name(id=called), args=[ast.Constant(value=str(name))]
                ) if called.endswith("fault_point"):
                    names.add(name)
    assert names
    return frozenset(names)


def _missing(names: Iterable[str], file: str) -> list[str]:
    terms = page(Path(REFERENCE, file)).terms
    return sorted(str(name) for name in names if str(name) not in terms)


def _openapi() -> Schema:
    app = App("documented")
    app.operation("things", path="/things")(handler)
    return build_openapi(app, Settings())


def _routes() -> list[str]:
    """The routes as the contract writes them: the operation's path as `{op}`."""
    return [
        f"{method.upper()} {path.replace('/things', '{op}')}"
        for path, item in _openapi()["paths"].items()
        for method in item
        if method in {"get", "post", "delete", "put", "patch"}
    ]
