"""The paper the shop's reports are printed on: letterhead, footer, typefaces and colours."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Literal, TypeAlias

from fpdf import FPDF

SHOP_NAME = "Lantern & Moth Booksellers"

Colour: TypeAlias = tuple[int, int, int]
GREEN: Colour = (28, 66, 58)
GOLD: Colour = (214, 165, 76)
CREAM: Colour = (226, 219, 200)
PAPER: Colour = (247, 244, 236)
INK: Colour = (38, 42, 46)
GREY: Colour = (112, 118, 124)
RUST: Colour = (176, 62, 44)
WHITE: Colour = (255, 255, 255)

FONTS = Path(__file__).with_name("fonts")
MARGIN_MM = 16.0
LETTERHEAD_MM = 32.0


@dataclass(frozen=True, slots=True)
class Face:
    """How a piece of text looks; the size is in points."""

    size: float
    colour: Colour = INK
    style: str = ""
    family: str = "sans"


class Sheet(FPDF):
    """A4 paper, with the letterhead on the first page and a footer on each."""

    def __init__(self, subject: str, on: date) -> None:
        super().__init__(format="A4")
        self._subject = subject
        self._on = f"{on.day} {on:%B %Y}"
        self.add_font("sans", fname=FONTS / "DejaVuSansCondensed.ttf")
        self.add_font("sans", style="B", fname=FONTS / "DejaVuSansCondensed-Bold.ttf")
        self.add_font("serif", style="B", fname=FONTS / "DejaVuSerif-Bold.ttf")
        self.set_margin(MARGIN_MM)
        self.c_margin = 0
        self.set_auto_page_break(True, margin=20)
        self.set_title(subject)
        self.set_author(SHOP_NAME)
        self.set_lang("en")
        self.set_creation_date(datetime.combine(on, time(), UTC))

    def header(self) -> None:
        if self.page_no() > 1:
            return
        self.fill_rect(0, 0, self.w, LETTERHEAD_MM, GREEN)
        self.fill_rect(0, LETTERHEAD_MM, self.w, 1.2, GOLD)
        self._draw_book(MARGIN_MM, 9)
        self.write_at(MARGIN_MM + 22, 8.5, SHOP_NAME, Face(17, WHITE, "B", "serif"))
        self.write_at(MARGIN_MM + 22, 18, self._subject, Face(10.5, CREAM))
        self.write_at(self.w - MARGIN_MM, 18, self._on, Face(10.5, CREAM), "R")
        self.set_y(LETTERHEAD_MM + 9)

    def footer(self) -> None:
        y = self.h - 13
        self.set_draw_color(*GOLD)
        self.set_line_width(0.3)
        self.line(MARGIN_MM, y - 1.5, self.w - MARGIN_MM, y - 1.5)
        self.write_at(MARGIN_MM, y, f"{SHOP_NAME}  ·  {self._subject}", Face(8, GREY))
        # The number of pages is filled in at the end, and is narrower than the mark that stands for it.
        overhang = self.get_string_width("{nb}") - self.get_string_width("0")
        page = f"Page {self.page_no()} of {{nb}}"
        self.write_at(self.w - MARGIN_MM + overhang, y, page, Face(8, GREY), "R")

    def write_at(self, x: float, y: float, text: str, face: Face, align: Literal["L", "R"] = "L") -> None:
        """Write a line whose top is at y, and which begins (`L`) or ends (`R`) at x, in mm."""
        self.set_font(face.family, face.style, face.size)
        self.set_text_color(*face.colour)
        width = self.get_string_width(text)
        self.set_xy(x - width if align == "R" else x, y)
        self.cell(width, face.size * 0.5, text)

    def fill_rect(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        self.set_fill_color(*colour)
        self.rect(x, y, width, height, style="F")

    def _draw_book(self, x: float, y: float) -> None:
        """An open book, 17 mm wide, with a flame above it."""
        self.set_fill_color(*GOLD)
        for side in (-1, 1):
            spine = x + 8.5 + side * 0.4
            edge = x + 8.5 + side * 8.5
            self.polygon([(spine, y + 7), (edge, y + 4.6), (edge, y + 12.6), (spine, y + 15)], style="F")
        self.polygon([(x + 8.5, y - 2), (x + 10.4, y + 2.2), (x + 8.5, y + 5), (x + 6.6, y + 2.2)], style="F")
