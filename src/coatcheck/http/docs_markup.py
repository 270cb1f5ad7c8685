"""HTML from Python values. Texts are escaped wherever they enter; only Markup, made here, is taken as it is."""

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any, TypeAlias

Child: TypeAlias = "str | Iterable[Child] | None"

_VOID = frozenset({"br", "img", "link", "meta"})
_INLINE = re.compile(r"`([^`\n]+)`|\*([^*\s][^*\n]*)\*")
_JSON_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)')


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, /, *children: Child, **attributes: str | None) -> Markup:
    """One element. A trailing `_` of an attribute's name is dropped; an attribute of None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{joined(children)}</{tag}>")


def joined(children: Iterable[Child]) -> Markup:
    """Children one after the other; None is nothing."""
    return Markup("".join(_written(child) for child in children))


def _written(child: Child) -> str:
    match child:
        case None:
            return ""
        case Markup():
            return child
        case str():
            return escape(child)
        case _:
            return joined(child)


def inline(text: str) -> Markup:
    """One line of text, with `code` and *emphasis*."""
    parts: list[Child] = []
    end = 0
    for match in _INLINE.finditer(text):
        parts.append(text[end : match.start()])
        parts.append(element("code", match[1]) if match[1] else element("em", match[2]))
        end = match.end()
    return joined([*parts, text[end:]])


def prose(text: str) -> Markup:
    """Paragraphs, and lists of lines that begin with `- `."""
    return joined(_block(block) for block in re.split(r"\n\s*\n", text.strip()) if block.strip())


def _block(block: str) -> Markup:
    lines = block.split("\n")
    if all(line.startswith("- ") for line in lines):
        return element("ul", [element("li", inline(line[2:])) for line in lines])
    return element("p", inline(block))


def json_block(value: Any) -> Markup:
    """A JSON value, indented and coloured."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    parts: list[Child] = []
    end = 0
    for match in _JSON_TOKEN.finditer(text):
        parts.append(text[end : match.start()])
        parts.append(_json_token(match))
        end = match.end()
    return element("pre", element("code", *parts, text[end:]), class_="json", tabindex="0")


def _json_token(match: re.Match[str]) -> Child:
    string, colon, word, number = match.groups()
    if string and colon:
        return [element("span", string, class_="key"), colon]
    if string:
        return element("span", string, class_="string")
    return element("span", word or number, class_="literal")
