"""Logs: one event name and its fields a line, JSON in files and pipes, readable on a terminal.

Rooms log through `get_logger`; lines travel as ordinary records of the standard library, so that an app that mounts
Coatcheck sees them in its own logs. `configure_logging` gives them, and everybody else's, one look.
Payloads, results, keys and secrets are never logged.
"""

import json
import logging
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, TypeAlias

import orjson
import structlog
from structlog.stdlib import BoundLogger
from structlog.typing import Processor

bound_log_context = structlog.contextvars.bound_contextvars
"""A context manager: its keywords stand in every line logged inside it."""

LogFormat: TypeAlias = Literal["auto", "json", "console"]
_EventDict: TypeAlias = MutableMapping[str, Any]
_ROOT = "coatcheck"
_FIRST_FIELDS = ("timestamp", "level", "event", "logger")


@dataclass(frozen=True, slots=True)
class _Message:
    """A log line as a record's message: readable by any formatter, taken apart by ours."""

    event: str
    fields: Mapping[str, Any]

    def __str__(self) -> str:
        return " ".join([self.event, *(f"{name}={value!s}" for name, value in self.fields.items())])


def get_logger(name: str) -> BoundLogger:
    """A logger of the room `name`: `log.info("runner_started", runner=1)`."""
    full_name = name if name.partition(".")[0] == _ROOT else f"{_ROOT}.{name}"
    logger: BoundLogger = structlog.wrap_logger(
        logging.getLogger(full_name),
        processors=[structlog.stdlib.filter_by_level, structlog.contextvars.merge_contextvars, _as_record],
        wrapper_class=BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger


def configure_logging(log_format: LogFormat, level: str, stream: TextIO | None = None) -> None:
    """Give every line of this process one look, on `stream` (standard error). For processes of Coatcheck's own."""
    target = sys.stderr if stream is None else stream
    is_console = log_format == "console" or (log_format == "auto" and target.isatty())
    handler = logging.StreamHandler(target)
    handler.setFormatter(_console_formatter(target.isatty()) if is_console else _json_formatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        other = logging.getLogger(name)
        other.handlers[:] = []
        other.propagate = True
    # Below errors it tells of starts, which are told elsewhere, and of every malformed request anybody sends.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    logging.captureWarnings(True)


def _as_record(logger: Any, method: str, event_dict: _EventDict) -> tuple[tuple[Any, ...], dict[str, Any]]:
    options = {name: event_dict.pop(name) for name in ("exc_info", "stack_info") if name in event_dict}
    event = str(event_dict.pop("event", ""))
    return (_Message(event, dict(event_dict)),), options


class _Formatter(logging.Formatter):
    """A record, whoever logged it, through a row of structlog's processors."""

    def __init__(self, *processors: Processor) -> None:
        super().__init__()
        self._processors = processors

    def format(self, record: logging.LogRecord) -> str:
        line: Any = _from_record(record)
        for process in self._processors:
            line = process(None, record.levelname, line)
        return str(line)


def _json_formatter() -> logging.Formatter:
    # A traceback as text shows no local variables, which may hold payloads.
    return _Formatter(structlog.processors.format_exc_info, _ordered, structlog.processors.JSONRenderer(_dumps))


def _console_formatter(has_colors: bool) -> logging.Formatter:
    plain = structlog.dev.plain_traceback
    return _Formatter(structlog.dev.ConsoleRenderer(colors=has_colors, exception_formatter=plain, pad_event_to=24))


def _from_record(record: logging.LogRecord) -> _EventDict:
    event_dict: dict[str, Any] = {}
    if isinstance(record.msg, _Message):
        event_dict |= record.msg.fields
        event_dict["event"] = record.msg.event
    else:
        event_dict["event"] = record.getMessage()
    moment = datetime.fromtimestamp(record.created, UTC)
    event_dict["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event_dict["level"] = record.levelname.lower()
    event_dict["logger"] = record.name
    if record.exc_info:
        event_dict["exc_info"] = record.exc_info
    return event_dict


def _ordered(logger: Any, method: str, event_dict: _EventDict) -> _EventDict:
    first = {name: event_dict.pop(name) for name in _FIRST_FIELDS if name in event_dict}
    return {**first, **event_dict}


def _dumps(value: Any, default: Any = str, **options: Any) -> str:
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (orjson.JSONEncodeError, UnicodeDecodeError):
        # Lone surrogates and very large numbers: a line must never be lost over them.
        return json.dumps(value, default=str)
