"""Logs: one look for everybody's lines, and nothing lost or leaked."""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from coatcheck.observe.logs import LogFormat, bound_log_context, configure_logging, get_logger


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # A command that ran in this process before may have left it on, and then it would not be turned on anew.
    logging.captureWarnings(False)
    yield
    logging.captureWarnings(False)
    root.handlers[:], root.level = handlers, level


def configured(log_format: LogFormat, stream: io.StringIO, level: str = "info") -> io.StringIO:
    configure_logging(log_format, level, stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_has_the_event_first_and_every_field() -> None:
    stream = configured("auto", io.StringIO())
    get_logger("worker").info("attempt_ended", job="job_1", attempt=2, name="n", module="m")
    [line] = lines(stream)
    assert list(line)[:4] == ["timestamp", "level", "event", "logger"]
    assert line["timestamp"].endswith("Z")
    assert line["logger"] == "coatcheck.worker"
    assert (line["job"], line["attempt"], line["name"], line["module"]) == ("job_1", 2, "n", "m")


def test_context_stands_in_every_line_inside_it() -> None:
    stream = configured("json", io.StringIO())
    with bound_log_context(correlation_id="abc"):
        get_logger("http").info("one")
    get_logger("http").info("two")
    one, two = lines(stream)
    assert one["correlation_id"] == "abc"
    assert "correlation_id" not in two


def test_other_peoples_lines_and_warnings_look_the_same() -> None:
    stream = configured("json", io.StringIO())
    logging.getLogger("uvicorn.error").error("boom")
    logging.getLogger("somebody").warning("said %s", "so")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("careful", stacklevel=1)
    assert [line["logger"] for line in lines(stream)] == ["uvicorn.error", "somebody", "py.warnings"]
    assert lines(stream)[1]["event"] == "said so"


def test_levels_are_kept() -> None:
    stream = configured("json", io.StringIO(), "warning")
    get_logger("x").info("quiet")
    get_logger("x").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_a_traceback_shows_no_local_variables() -> None:
    for log_format in ("json", "console"):
        stream = configured(log_format, io.StringIO())
        secret = "pay" + "load"
        try:
            raise ValueError(len(secret))
        except ValueError:
            get_logger("x").exception("failed")
        assert "ValueError: 7" in stream.getvalue()
        assert secret not in stream.getvalue()


@pytest.mark.parametrize("value", ["\ud800", 1 << 80, object(), b"bytes", {1: 2}])
def test_no_value_loses_a_line(value: object) -> None:
    stream = configured("json", io.StringIO())
    get_logger("x").info("odd", value=value)
    assert lines(stream)[0]["event"] == "odd"


def test_colours_only_on_a_terminal() -> None:
    terminal, pipe = configured("auto", Terminal()), io.StringIO()
    get_logger("x").info("seen", job="job_1")
    assert "\x1b[" in terminal.getvalue()
    configured("console", pipe)
    get_logger("x").info("seen", job="job_1")
    assert "\x1b[" not in pipe.getvalue()
    assert "job=job_1" in pipe.getvalue()


def test_a_host_app_sees_a_readable_record(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        get_logger("worker").info("runner_ready", runner=1)
    assert caplog.messages == ["runner_ready runner=1"]
