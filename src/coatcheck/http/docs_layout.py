"""The frame of every page: head, navigation, content. No scripts, no inline styles, nothing from other hosts."""

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.http.docs_markup import Child, Markup, element


@dataclass(frozen=True, slots=True)
class NavLink:
    """One line of the navigation, with the places of its own page below it while that page is shown."""

    text: str
    href: str
    places: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class NavGroup:
    """Links under one heading."""

    title: str
    links: Sequence[NavLink]


@dataclass(frozen=True, slots=True)
class Frame:
    """What all pages of one service share. `styles` and `icon` are URLs of static files."""

    app_name: str
    home: str
    styles: str
    icon: str
    navigation: Sequence[NavGroup]

    def page(self, title: str, here: str, content: Child) -> bytes:
        """A whole page. `here`: its own URL, marked in the navigation."""
        head = element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("meta", name="referrer", content="no-referrer"),
            element("title", f"{title} · {self.app_name}"),
            element("link", rel="stylesheet", href=self.styles),
            element("link", rel="icon", href=self.icon, type="image/svg+xml"),
        )
        body = element(
            "body",
            element("a", "Skip to the content", href="#content", class_="skip"),
            element("header", self._brand(), element("details", element("summary", "Menu"), self._nav(here))),
            element("aside", self._brand(), self._nav(here)),
            element("main", content, id="content"),
        )
        return f"<!doctype html>\n{element('html', head, body, lang='en')}\n".encode()

    def _brand(self) -> Markup:
        return element(
            "a",
            element("img", src=self.icon, alt="", width="28", height="28"),
            element("span", self.app_name),
            href=self.home,
            class_="brand",
        )

    def _nav(self, here: str) -> Markup:
        return element("nav", [_group(group, here) for group in self.navigation], aria_label="Pages")


def _group(group: NavGroup, here: str) -> Child:
    return [element("h2", group.title), element("ul", [_link(link, here) for link in group.links])]


def _link(link: NavLink, here: str) -> Markup:
    is_here = link.href == here
    places = [element("li", element("a", text, href=f"#{anchor}")) for text, anchor in link.places] if is_here else []
    return element(
        "li",
        element("a", link.text, href=link.href, aria_current="page" if is_here else None),
        element("ul", places) if places else None,
    )
