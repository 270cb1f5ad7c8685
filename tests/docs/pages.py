"""The documentation as data: headings, table rows, links and code blocks of every page."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"


@dataclass(frozen=True)
class Fence:
    """A fenced code block. `words` is what stands behind its opening fence: the language, then our own marks."""

    words: tuple[str, ...]
    code: str
    line: int


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def tokens(self) -> list[Token]:
        return MarkdownIt("commonmark").enable("table").parse(self.text)

    @cached_property
    def headings(self) -> list[Token]:
        """The inline tokens of the headings, in order."""
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        return [inline for opening, inline in pairs if opening.type == "heading_open"]

    @cached_property
    def anchors(self) -> frozenset[str]:
        """What a link may name behind `#`, as GitHub makes it of the headings."""
        seen: Counter[str] = Counter()
        anchors = set()
        for heading in self.headings:
            slug = _slug(_plain(heading))
            anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
        return frozenset(anchors)

    @cached_property
    def first_cells(self) -> list[Token]:
        """The inline tokens of the first cell of each table row."""
        triples = zip(self.tokens, self.tokens[1:], self.tokens[2:], strict=False)
        return [inline for row, cell, inline in triples if row.type == "tr_open" and cell.type == "td_open"]

    @cached_property
    def terms(self) -> frozenset[str]:
        """The names in code type that have a heading or a table row here."""
        inlines = [*self.headings, *self.first_cells]
        return frozenset(
            child.content for inline in inlines for child in inline.children or () if child.type == "code_inline"
        )

    @cached_property
    def links(self) -> list[tuple[str, int]]:
        """Every link and image with the line it stands near."""
        return [
            (str(child.attrs.get("href", child.attrs.get("src"))), (inline.map or [0])[0] + 1)
            for inline in self.tokens
            for child in inline.children or ()
            if child.type in {"link_open", "image"}
        ]

    @cached_property
    def fences(self) -> list[Fence]:
        return [
            Fence(tuple(token.info.split()), token.content, (token.map or [0])[0] + 1)
            for token in self.tokens
            if token.type == "fence"
        ]


@cache
def page(path: Path) -> Page:
    return Page(path, path.read_text("utf-8"))


def pages() -> Iterator[Page]:
    """Every page a reader may land on."""
    for path in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")]):
        yield page(path)


def reference_terms() -> frozenset[str]:
    """The names in code type that have a heading or a table row anywhere in the reference."""
    return frozenset().union(*(one.terms for one in pages() if one.path.is_relative_to(REFERENCE)))


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
