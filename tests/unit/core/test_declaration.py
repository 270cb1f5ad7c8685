"""Declaring operations: what is taken, and what is refused at import in one sentence."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from coatcheck.app import App
from coatcheck.core.backoff import Backoff
from coatcheck.core.costs import Budget
from coatcheck.core.files import File
from coatcheck.core.policy import DAY_S, DEFAULT_POLICY, Policy, Retention, RunsIn
from coatcheck.declaration import DeclarationError


class Request(BaseModel):
    branch: str


async def handler(request: Request, job: object) -> dict[str, int]:
    """Count the titles.

    The rest is for people who read code.
    """
    return {}


def blocking(request: Request, job: object) -> dict[str, int]:
    return {}


def _policy(handler: Callable[..., Any] = handler, **options: Any) -> Policy:
    app = App("bookshop")
    app.operation("reports", **options)(handler)
    return app.operations["reports"].policy


def test_an_operation_without_options_has_the_documented_defaults() -> None:
    app = App("bookshop")
    assert app.operation("reports")(handler) is handler
    operation = app.operations["reports"]
    assert (operation.name, operation.path, operation.version) == ("reports", "/v1/reports", "1")
    assert (operation.summary, operation.is_async, operation.returns_file) == ("Count the titles.", True, False)
    assert operation.policy == DEFAULT_POLICY == app.policies.of("reports")
    policy = operation.policy
    assert (policy.max_attempts, policy.queue_limit_s, policy.payload_bytes_max) == (5, 3600, 1024 * 1024)
    assert policy.backoff == Backoff(first_s=1, factor=2, max_s=300)
    assert policy.key_window_s == DAY_S


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"max_attempts": 1}, "max_attempts", 1),
        ({"timeout": "2m"}, "timeout_s", 120),
        ({"timeout": None}, "timeout_s", None),
        ({"queue_limit": timedelta(hours=2)}, "queue_limit_s", 7200),
        ({"queue_limit": None}, "queue_limit_s", None),
        ({"deadline": "1h", "deadline_max": "1h"}, "deadline_max_s", 3600),
        ({"key_required": True}, "is_key_required", True),
        ({"key_window": 3600}, "key_window_s", 3600),
        ({"concurrency": 4}, "concurrency_max", 4),
        ({"backoff": Backoff(first_s=5)}, "backoff", Backoff(first_s=5)),
        ({"priorities": (2, 7)}, "priority_max", 7),
        ({"cost": 2}, "cost", {"cost": 2}),
        ({"cost": {"tokens": len, "calls": 0.5}}, "cost", {"tokens": len, "calls": 0.5}),
        ({"budget": "5 calls / 1h"}, "budgets", {"calls": Budget("calls", 5, 3600)}),
        ({"processing_max": "10m"}, "processing_max_s", 600),
        ({"processing_max": None}, "processing_max_s", None),
        ({"spend_max": {"calls": 20, "tokens": 0.5}}, "spend_max", {"calls": 20_000_000, "tokens": 500_000}),
        ({"runs_in": "process"}, "runs_in", RunsIn.PROCESS),
        ({"retention": "7d"}, "retention", Retention(7 * DAY_S, 7 * DAY_S, 7 * DAY_S, 7 * DAY_S)),
        (
            {"retention": {"result": "1h", "tombstone": "90d"}},
            "retention",
            Retention(result_s=3600, tombstone_s=90 * DAY_S),
        ),
    ],
    ids=str,
)
def test_options_are_taken(options: dict[str, Any], field: str, value: object) -> None:
    assert getattr(_policy(**options), field) == value


def test_a_def_handler_runs_in_a_thread() -> None:
    assert _policy(blocking).runs_in is RunsIn.THREAD
    assert _policy(blocking, runs_in="process").runs_in is RunsIn.PROCESS


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": True},
        {"max_attempts": "5"},
        {"max_attempts": 1001},
        {"timeout": "2 weeks"},
        {"timeout": 0},
        {"timeout": -1},
        {"queue_limit": "0s"},
        {"deadline": "2h", "deadline_max": "1h"},
        {"key_required": "yes"},
        {"key_window": 0},
        {"payload_bytes_max": 0},
        {"result_bytes_max": 1.5},
        {"concurrency": 0},
        {"priorities": (7, 2)},
        {"processing_max": 0},
        {"cost": -1},
        {"cost": "2"},
        {"cost": {}},
        {"cost": {"Calls": 1}},
        {"budget": "5 calls"},
        {"budget": []},
        {"budget": ["5 calls / 1h", "6 calls / 1h"]},
        {"spend_max": {}},
        {"spend_max": 20},
        {"spend_max": {"Calls": 20}},
        {"spend_max": {"calls": -1}},
        {"spend_max": {"calls": "20"}},
        {"spend_max": {f"kind-{number}": 1 for number in range(9)}},
        {"priorities": (0, 10)},
        {"priorities": 5},
        {"priorities": (1, 2, 3)},
        {"backoff": 5},
        {"retention": "soon"},
        {"retention": {"result": -1}},
        {"retention": {"results": "1h"}},
        {"runs_in": "cloud"},
        {"runs_in": "thread"},
        {"retries": 3},
        {"version": ""},
        {"version": "a b"},
        {"path": "reports"},
        {"path": "/v1/jobs"},
    ],
    ids=str,
)
def test_a_wrong_option_is_one_sentence_that_names_it(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError) as refusal:
        _policy(**options)
    _must_be_one_sentence(refusal.value)
    assert any(name in str(refusal.value) for name in options)


async def _no_types(request: Request, job: object) -> None: ...


_no_types.__annotations__.clear()


async def _undefined(request: Request, job: object) -> None: ...


_undefined.__annotations__["request"] = "Nowhere"


async def _one_argument(request: Request) -> None: ...


async def _named_only(*, request: Request, job: object) -> None: ...


class _Callable:
    def __call__(self, request: Request, job: object) -> None: ...


class _Opaque:
    pass


async def _opaque(request: _Opaque, job: object) -> None: ...


@pytest.mark.parametrize(
    "wrong",
    [_no_types, _one_argument, _named_only, _undefined, _Callable(), _opaque, Request, "handler"],
    ids=["no types", "one argument", "named only", "undefined", "callable object", "opaque", "class", "text"],
)
def test_a_wrong_handler_is_one_sentence(wrong: Any) -> None:
    with pytest.raises(DeclarationError) as refusal:
        App("bookshop").operation("reports")(wrong)
    _must_be_one_sentence(refusal.value)
    assert str(refusal.value).startswith("Operation 'reports': ")


@pytest.mark.parametrize("name", ["", "Reports", "1st", "re ports", "r" * 64, "ä", "reports\n"])
def test_a_wrong_name_is_one_sentence(name: str) -> None:
    for declare in (lambda: App(name), lambda: App("bookshop").operation(name)(handler)):
        with pytest.raises(DeclarationError) as refusal:
            declare()
        _must_be_one_sentence(refusal.value)


def test_a_name_or_path_is_declared_once() -> None:
    app = App("bookshop")
    app.operation("reports")(handler)
    for name, path in (("reports", "/other"), ("other", "/v1/reports"), ("another", "/v1/reports/x")):
        with pytest.raises(DeclarationError) as refusal:
            app.operation(name, path=path)(handler)
        _must_be_one_sentence(refusal.value)
    assert list(app.operations) == ["reports"]


def test_a_file_stands_apart_from_the_json_of_a_result() -> None:
    app = App("bookshop")

    @app.operation("both")
    async def both(request: Request, job: object) -> dict[str, int] | File:
        return File(b"")

    @app.operation("file")
    async def file(request: Request, job: object) -> File:
        return File(b"")

    @app.operation("nothing")
    async def nothing(request: Request, job: object) -> None: ...

    assert [operation.returns_file for operation in app.operations.values()] == [True, True, False]
    json_types = {name: operation.result for name, operation in app.operations.items()}
    assert json_types["file"] is None
    assert json_types["both"] is not None
    assert json_types["both"].json_schema()["type"] == "object"
    assert json_types["nothing"] is not None


def test_operations_are_read_only_from_outside() -> None:
    operations: Any = App("bookshop").operations
    with pytest.raises(TypeError):
        operations["reports"] = None


def _must_be_one_sentence(error: DeclarationError) -> None:
    text = str(error)
    assert "\n" not in text
    assert text.endswith(".")
    assert not re.search(r"[.!?] [A-Z]", text), text
