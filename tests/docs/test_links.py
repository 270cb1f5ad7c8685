"""Every link inside the documentation leads somewhere, and every page can be reached from the README."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from .pages import DOCS, ROOT, Page, page, pages


def test_internal_links_lead_somewhere() -> None:
    faults = [
        f"{one.name}:{line}: {href}: {fault}"
        for one in pages()
        for href, line in one.links
        if (fault := _fault(one, href)) is not None
    ]
    assert not faults, "\n" + "\n".join(faults)


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached or path.suffix != ".md" or not path.is_file():
            continue
        reached.add(path)
        one = page(path)
        waiting.extend(_target(one, href) for href, _ in one.links if not urlsplit(href).scheme)
    assert sorted(set(DOCS.rglob("*.md")) - reached) == []


def test_pages_have_one_title() -> None:
    titles = {one.name: [token.markup for token in one.tokens if token.type == "heading_open"] for one in pages()}
    assert [name for name, marks in titles.items() if marks[:1] != ["#"] or marks.count("#") != 1] == []


def _target(one: Page, href: str) -> Path:
    path = unquote(urlsplit(href).path)
    return (one.path.parent / path).resolve() if path else one.path


def _fault(one: Page, href: str) -> str | None:
    parts = urlsplit(href)
    if parts.scheme:
        return None if parts.scheme in {"https", "http"} else "not a web address"
    target = _target(one, href)
    if not target.is_relative_to(ROOT) or not target.exists():
        return "no such file"
    if parts.fragment and (target.suffix != ".md" or parts.fragment not in page(target).anchors):
        return "no such heading"
    return None
