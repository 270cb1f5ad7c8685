"""The command line as it introspects itself, and the commands the pages show."""

import re
import shlex
from collections.abc import Collection, Iterator, Sequence

import typer
from typer.core import TyperCommand, TyperGroup

from coatcheck.cli.main import cli

from .pages import Page, pages

_SHOWN = re.compile(r"^(?:\$ )?((?:[A-Z_]+=\S+ )*)coatcheck (?P<rest>[^\n#>]*)", re.MULTILINE)


def commands() -> Iterator[tuple[str, TyperCommand]]:
    """Every command as it is typed, `coatcheck serve`, in the order of the help page; a group's one by one."""
    root = typer.main.get_command(cli)
    assert isinstance(root, TyperGroup)
    yield from _commands_of("coatcheck", root)


def _commands_of(path: str, group: TyperGroup) -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands_of(f"{path} {name}", command)
        else:
            assert isinstance(command, TyperCommand)
            yield f"{path} {name}", command


def named_by(words: Sequence[str], known: Collection[str]) -> str | None:
    """The command that the words of a line begin with."""
    spelled = (" ".join(words[:count]) for count in (2, 1))
    return next((name for name in spelled if name in known), None)


def option_names_of(command: TyperCommand) -> set[str]:
    """All spellings of the options of one command."""
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return {name for name in names if name.startswith("-")} | {"--help"}


def shown_commands() -> Iterator[tuple[Page, Sequence[str]]]:
    """Each `coatcheck …` line of a code block on any page, as words without the program's name."""
    for one in pages():
        for token in one.tokens:
            if token.type in {"fence", "code_block"}:
                for match in _SHOWN.finditer(token.content):
                    yield one, shlex.split(match["rest"])
