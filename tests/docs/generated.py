"""The parts of the reference that are written from the code: `python tests/docs/generated.py` writes them anew.

Each stands on its page between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from coatcheck.cli.flags import config_option, flag_of, flag_rows
from coatcheck.cli.main import cli
from coatcheck.core import limits
from coatcheck.core.errors import HANDLER_CATEGORIES, TITLES, ErrorCategory
from coatcheck.core.events import EventType
from coatcheck.core.problems import PROBLEMS
from coatcheck.core.states import TRANSITIONS, Event, Status
from coatcheck.observe.metrics import METRICS
from coatcheck.settings import describe_settings

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"

_SECTION = re.compile(r"<!-- generated: (?P<name>[a-z-]+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)


def state_picture() -> str:
    """The moves between different states as a Mermaid diagram, one arrow for each pair."""
    moves: dict[tuple[Status, Status], list[Event]] = {}
    for (source, event), target in TRANSITIONS.items():
        if source is not target:
            moves.setdefault((source, target), []).append(event)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Status.QUEUED}"]
    for (source, target), events in moves.items():
        lines.append(f"    {source} --> {target}: {', '.join(sorted(event.value for event in events))}")
    lines += [f"    {status} --> [*]" for status in Status if status.is_final]
    return "\n".join([*lines, "```"])


def transition_table() -> str:
    """Every legal move, the ones that stay in a state included."""
    rows = [(f"`{event}`", f"`{source}`", f"`{target}`") for (source, event), target in TRANSITIONS.items()]
    return _table(("event", "from", "to"), sorted(rows))


def setting_tables() -> str:
    """The settings by group, each with its variable and its default."""
    rows = describe_settings()
    groups = dict.fromkeys(row.group for row in rows)
    parts = []
    for group in groups:
        lines = [
            (f"`{row.name}`", f"`{row.env}`", row.type, _code(row.default), row.description)
            for row in rows
            if row.group == group
        ]
        parts.append(f"### {group}\n\n{_table(('setting', 'variable', 'value', 'default', 'what it does'), lines)}")
    return "\n\n".join(parts)


def setting_flags() -> str:
    """The flag of each setting, and the one that says where others are read from."""
    rows = [("`--config`", "", config_option().help)]
    rows += [(f"`{flag_of(row.name)}`", f"[`{row.name}`](settings.md)", row.description) for row in flag_rows()]
    return _table(("option", "setting", "what it does"), rows)


def command_list() -> str:
    """Each command with what it says of itself, and the options that are its own."""
    parts = []
    for path, command in _commands(typer.main.get_command(cli), "coatcheck"):
        rows = [
            (f"`{parameter.opts[0]}`", str(getattr(parameter, "help", "")))
            for parameter in command.params
            # Settings have a table of their own, and the page says once which commands take which.
            if parameter.opts[0].startswith("-") and not _is_of_settings(parameter)
        ]
        arguments = [str(one.metavar) for one in command.params if not one.opts[0].startswith("-")]
        usage = " ".join([path, *arguments])
        table = _table(("option", "what it does"), rows) if rows else "No options of its own."
        parts.append(f"### `{path}`\n\n{_help(command.help or '', usage)}\n\n{table}")
    return "\n\n".join(parts)


def _is_of_settings(parameter: Any) -> bool:
    return parameter.opts[0] == "--config" or str(getattr(parameter, "rich_help_panel", "")).startswith("Settings: ")


def _commands(command: Any, path: str) -> Iterator[tuple[str, TyperCommand]]:
    """Every command as it is typed, those of a group by themselves."""
    if isinstance(command, TyperGroup):
        for name, member in command.commands.items():
            yield from _commands(member, f"{path} {name}")
    elif isinstance(command, TyperCommand):
        yield path, command


def _help(text: str, usage: str) -> str:
    """A command's help with its examples as code. What follows them is prose again."""
    paragraphs = [paragraph.strip() for paragraph in inspect.cleandoc(text).split("\n\n")]
    shown = [f"    {usage}"]
    for paragraph in paragraphs:
        if paragraph.startswith("coatcheck "):
            shown.append(f"    {paragraph}")
        elif paragraph not in {"Example:", "Examples:"}:
            shown.append(" ".join(paragraph.split()))
    return "\n\n".join(shown)


def problem_table() -> str:
    """Every code, in the order of its usual status."""
    rows = [
        (f"`{kind.code}`", ", ".join(map(str, kind.statuses)), kind.meaning, kind.remedy)
        for kind in sorted(PROBLEMS.values(), key=lambda kind: kind.status)
    ]
    return _table(("code", "status", "what it means", "what to do"), rows)


def metric_table() -> str:
    rows = [(f"`{row.prometheus_name}`", row.kind.value, row.unit, _codes(row.labels), row.help) for row in METRICS]
    return _table(("metric", "kind", "unit", "labels", "what it shows"), rows)


def category_table() -> str:
    rows = [
        (f"`{category}`", TITLES[category], "the handler" if category in HANDLER_CATEGORIES else "the service")
        for category in ErrorCategory
    ]
    return _table(("category", "title", "who may use it"), rows)


def event_table() -> str:
    return _table(("type",), [(f"`{event}`",) for event in EventType])


def limit_table() -> str:
    """Every named maximum with its value."""
    values = [(name, value) for name, value in vars(limits).items() if name.isupper()]
    return _table(("limit", "value"), [(f"`{name}`", f"{value:,}") for name, value in values])


SECTIONS: dict[str, Callable[[], str]] = {
    "state-picture": state_picture,
    "transitions": transition_table,
    "settings": setting_tables,
    "commands": command_list,
    "setting-flags": setting_flags,
    "problems": problem_table,
    "metrics": metric_table,
    "error-categories": category_table,
    "event-types": event_table,
    "limits": limit_table,
}


def refreshed(text: str) -> str:
    """The page with its generated parts as the code has them now.

    Raises:
        KeyError: the page asks for a part that does not exist.
    """
    return _SECTION.sub(lambda m: f"<!-- generated: {m['name']} -->\n{SECTIONS[m['name']]()}\n<!-- end -->", text)


def used(text: str) -> list[str]:
    """The names of the generated parts on the page."""
    return [match["name"] for match in _SECTION.finditer(text)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(value: Any) -> str:
    match value:
        case None | ():
            return "not set"
        case tuple():
            return f"`{', '.join(map(str, value))}`"
        case bool():
            return f"`{str(value).lower()}`"
        case float():
            return f"`{value:g}`"
        case _:
            return f"`{value}`"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> None:
    for path in sorted(REFERENCE.rglob("*.md")):
        text = path.read_text("utf-8")
        if text != (fresh := refreshed(text)):
            path.write_text(fresh, "utf-8")
            sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
