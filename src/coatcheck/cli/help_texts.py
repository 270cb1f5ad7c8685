"""Docstrings as help: paragraphs flow in a terminal of any width, and examples stay as they are written."""

import inspect

import typer


def use_docstrings(app: typer.Typer) -> None:
    """Make the docstring of every command, those of groups included, its help."""
    for command in app.registered_commands:
        command.help = flowing(inspect.getdoc(command.callback) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            use_docstrings(group.typer_instance)


def flowing(text: str) -> str:
    """The text with each paragraph on one line, but for those that are indented."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else part.replace("\n", " ") for part in paragraphs)
