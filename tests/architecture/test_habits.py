"""The habits that keep the rooms apart and the code honest, checked on the syntax tree."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from .sources import PACKAGE, FunctionNode, Source, refuse, sources

EVERYWHERE = ("src", "tests", "examples")
VAGUE = r"(?:.*_)?(?:utils?|helpers?|managers?|base|common|misc)"
CLOCK_READS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}
MAY_READ_THE_CLOCK = (PACKAGE / "store" / "clock.py", PACKAGE / "testing")
MAY_SLEEP = PACKAGE / "testing" / "waiting.py"


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = re.compile(VAGUE)
    refuse(
        [
            source.at(1, f"a module called {part!r} can hold anything")
            for source in sources(*EVERYWHERE)
            for part in {source.path.stem, source.path.parent.name}
            if vague.fullmatch(part)
        ]
    )


def test_imports_stand_at_the_top() -> None:
    refuse(
        [
            source.at(node.lineno, f"import inside {function.name}")
            for source in sources(*EVERYWHERE)
            for function in source.functions()
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
    )


def test_time_comes_from_the_injected_clock() -> None:
    refuse(
        [
            source.at(node.lineno, f"reads the clock with {call}")
            for source in sources("src")
            if not any(source.path.is_relative_to(allowed) for allowed in MAY_READ_THE_CLOCK)
            for node, call in _clock_reads(source)
        ]
    )


def test_tests_wait_for_events_and_never_sleep() -> None:
    refuse(
        [
            source.at(node.lineno, "sleeps; wait for an event or with coatcheck.testing.waiting")
            for source in sources("tests", "src/coatcheck/testing")
            if source.path != MAY_SLEEP
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Call) and _is_sleep(node)
        ]
    )


def test_src_silences_no_type_error_and_leaves_nothing_to_do() -> None:
    unwanted = re.compile(r"type:\s*ignore|\b(?:TODO|FIXME|XXX)\b")
    refuse(
        [
            source.at(token.start[0], token.string.strip())
            for source in sources("src")
            for token in tokenize.generate_tokens(io.StringIO(source.text).readline)
            if token.type == tokenize.COMMENT and unwanted.search(token.string)
        ]
    )


def test_modules_begin_with_what_they_promise() -> None:
    refuse(
        [
            source.at(1, "the module docstring is missing" if docstring is None else "the docstring is over 6 lines")
            for source in sources("src")
            if source.text.strip()
            if (docstring := ast.get_docstring(source.tree)) is None or len(re.findall(r"(?m)^.*\S", docstring)) > 6
        ]
    )


def _clock_reads(source: Source) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if name in CLOCK_READS.get(owner, ()):
                yield node, f"{owner}.{name}"
            case ast.Attribute(value=ast.Attribute(attr=owner), attr=name) if name in CLOCK_READS.get(owner, ()):
                yield node, f"{owner}.{name}"
            case ast.ImportFrom(module="time", names=names):
                for alias in names:
                    if alias.name in CLOCK_READS["time"]:
                        yield node, f"time.{alias.name}"


def _is_sleep(call: ast.Call) -> bool:
    """`asyncio.sleep(0)` only lets others run: it waits for nothing and is no sleep."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    yields_only = len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    return name == "sleep" and not yields_only


def test_the_rules_see_what_they_forbid() -> None:
    """The checkers checked: each finds a planted fault."""
    planted = "def f():\n  time.monotonic(); datetime.datetime.now()\n  asyncio.sleep(1)\n  asyncio.sleep(0)\n"
    source = Source(PACKAGE / "planted.py", planted, ast.parse(planted))
    assert [call for _, call in _clock_reads(source)] == ["time.monotonic", "datetime.now"]
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    assert [_is_sleep(call) for call in calls].count(True) == 1
    assert [function.name for function in source.functions()] == ["f"]
    assert isinstance(next(source.functions()), FunctionNode)
