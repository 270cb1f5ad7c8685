"""The stock report as a PDF: the figures, a bar chart by genre, and the list of what to reorder."""

from fpdf.enums import TableBordersLayout
from fpdf.fonts import FontFace
from fpdf.table import Row

from bookshop.letterhead import CREAM, GREEN, GREY, INK, MARGIN_MM, PAPER, RUST, WHITE, Colour, Face, Sheet
from bookshop.summary import GenreFigures, LowStock, StockSummary

CARD_MM = 20.0
BAR_STEP_MM = 6.6
BAR_LEFT_MM = MARGIN_MM + 50
BAR_LENGTH_MM = 88.0
COLUMNS = (
    ("Title", 80, "LEFT"),
    ("Author", 52, "LEFT"),
    ("Shelf", 13, "CENTER"),
    ("Units", 13, "RIGHT"),
    ("Reorder at", 20, "RIGHT"),
)


def pdf_form(summary: StockSummary) -> bytes:
    """An A4 report. The same summary gives the same bytes."""
    sheet = Sheet(f"Stock report, {summary.branch_name}", summary.counted_on)
    sheet.add_page()
    _draw_figures(sheet, summary)
    _draw_genres(sheet, summary.genres)
    _draw_low_stock(sheet, summary.low_stock)
    return bytes(sheet.output())


def _draw_figures(sheet: Sheet, summary: StockSummary) -> None:
    figures: tuple[tuple[str, int, Colour], ...] = (
        ("Titles", summary.titles, INK),
        ("Units on hand", summary.units, INK),
        ("Titles to reorder", summary.low_stock_titles, RUST),
        ("Out of stock", summary.out_of_stock_titles, RUST),
    )
    gap, top = 4.0, sheet.get_y()
    width = (sheet.epw - gap * (len(figures) - 1)) / len(figures)
    for place, (label, figure, colour) in enumerate(figures):
        x = MARGIN_MM + place * (width + gap)
        sheet.fill_rect(x, top, width, CARD_MM, PAPER)
        sheet.fill_rect(x, top, 1.2, CARD_MM, colour if colour == RUST else GREEN)
        sheet.write_at(x + 3.5, top + 3, f"{figure:,}", Face(19, colour, "B"))
        sheet.write_at(x + 3.5, top + 13.2, label, Face(8.5, GREY))
    sheet.set_y(top + CARD_MM + 8)


def _draw_genres(sheet: Sheet, genres: list[GenreFigures]) -> None:
    _draw_heading(sheet, "Units by genre")
    longest = max((figures.units for figures in genres), default=0) or 1
    for figures in genres:
        y = sheet.get_y()
        length = BAR_LENGTH_MM * figures.units / longest
        sheet.write_at(MARGIN_MM, y, figures.genre, Face(9))
        sheet.fill_rect(BAR_LEFT_MM, y + 0.4, BAR_LENGTH_MM, 3.8, PAPER)
        sheet.fill_rect(BAR_LEFT_MM, y + 0.4, length, 3.8, GREEN)
        sheet.write_at(BAR_LEFT_MM + BAR_LENGTH_MM + 14, y, f"{figures.units:,}", Face(9, INK, "B"), "R")
        sheet.write_at(sheet.w - MARGIN_MM, y, f"{figures.low_stock} to reorder", Face(8, GREY), "R")
        sheet.set_y(y + BAR_STEP_MM)
    sheet.set_y(sheet.get_y() + 6)


def _draw_low_stock(sheet: Sheet, low_stock: list[LowStock]) -> None:
    _draw_heading(sheet, "Titles to reorder")
    if not low_stock:
        sheet.write_at(MARGIN_MM, sheet.get_y(), "Every title is above its reorder level.", Face(9.5))
        return
    sheet.set_font("sans", "", 8.5)
    sheet.set_text_color(*INK)
    with sheet.table(
        col_widths=tuple(width for _, width, _ in COLUMNS),
        text_align=tuple(align for _, _, align in COLUMNS),
        headings_style=FontFace(emphasis="BOLD", color=WHITE, fill_color=GREEN),
        borders_layout=TableBordersLayout.NONE,
        line_height=4.4,
        padding=(0.7, 1.4),
    ) as table:
        table.row([heading for heading, _, _ in COLUMNS])
        for place, low in enumerate(low_stock):
            _draw_low(table.row(), low, FontFace(fill_color=PAPER if place % 2 else WHITE))


def _draw_low(row: Row, low: LowStock, style: FontFace) -> None:
    for text in (low.title, low.author, low.shelf):
        row.cell(text, style=style)
    units_colour = INK if low.units else RUST
    row.cell(str(low.units), style=FontFace(emphasis="BOLD", color=units_colour, fill_color=style.fill_color))
    row.cell(str(low.reorder_level), style=style)


def _draw_heading(sheet: Sheet, text: str) -> None:
    sheet.write_at(MARGIN_MM, sheet.get_y(), text, Face(12.5, GREEN, "B", "serif"))
    y = sheet.get_y() + 8
    sheet.fill_rect(MARGIN_MM, y, sheet.epw, 0.3, CREAM)
    sheet.set_y(y + 3)
