"""The bookshop's reports say what its files say, in each of their forms, and its orders are placed once."""

import asyncio
import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bookshop.app import OrderPlaced, Reorder, StockReport, app, reorder, stock_report
from bookshop.csv_form import COLUMNS, csv_form
from bookshop.pdf_form import pdf_form
from bookshop.stock import DATA, open_shop
from bookshop.summary import StockSummary, Tally
from bookshop.supplier import Supplier
from coatcheck import ErrorCategory, File, JobError

BRANCHES = sorted(open_shop().branches)


class FakeJob:
    """Takes the place of a job where only its calls matter."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, str]] = []

    def progress(self, done: int, total: int, message: str) -> None:
        self.told.append((done, total, message))

    def effect_key(self, name: str) -> str:
        return f"key of {name}"

    def effect(self, name: str, fn: Any) -> Any:
        return fn()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BOOKSHOP_TILL_PAUSE", "0")
    monkeypatch.setenv("BOOKSHOP_ORDERS", str(tmp_path / "orders"))


def summary_of(branch: str) -> StockSummary:
    shop = open_shop()
    tally = Tally(shop.branches[branch])
    tally.add(shop.stock[branch])
    return tally.summary()


def report(branch: str, form: str, job: FakeJob | None = None) -> StockSummary | File:
    request = StockReport.model_validate({"branch": branch, "format": form})
    handler: Any = stock_report
    result: StockSummary | File = asyncio.run(handler(request, job or FakeJob()))
    return result


def counted(branch: str) -> list[tuple[str, int, int]]:
    """A branch's lines straight from the file, without the shop's own reading of it."""
    with (DATA / "stock.csv").open(encoding="utf-8") as file:
        return [(row[1], int(row[2]), int(row[3])) for row in csv.reader(file) if row[0] == branch]


@pytest.mark.parametrize("branch", BRANCHES)
def test_totals_are_those_of_the_file(branch: str) -> None:
    lines = counted(branch)
    summary = report(branch, "json")
    assert isinstance(summary, StockSummary)
    assert summary.branch == branch
    assert summary.titles == len(lines)
    assert summary.units == sum(units for _, units, _ in lines)
    assert {low.title_id for low in summary.low_stock} == {title for title, units, level in lines if units <= level}
    assert summary.low_stock_titles == len(summary.low_stock)
    assert summary.out_of_stock_titles == sum(units == 0 for _, units, _ in lines)


@pytest.mark.parametrize("branch", BRANCHES)
def test_genres_add_up_to_the_totals(branch: str) -> None:
    summary = summary_of(branch)
    assert sum(genre.titles for genre in summary.genres) == summary.titles
    assert sum(genre.units for genre in summary.genres) == summary.units
    assert sum(genre.low_stock for genre in summary.genres) == summary.low_stock_titles


def test_the_scarcest_titles_come_first() -> None:
    units = [low.units for low in summary_of("hamburg-altona").low_stock]
    assert units == sorted(units)
    assert units[0] == 0


def test_a_summary_is_small_enough_to_stand_inside_its_job() -> None:
    assert all(len(summary_of(branch).model_dump_json()) < 64 * 1024 for branch in BRANCHES)


def test_progress_rises_in_steps_to_all_titles() -> None:
    job = FakeJob()
    report("hamburg-altona", "json", job)
    done = [step for step, _, _ in job.told]
    total = len(counted("hamburg-altona"))
    assert len(done) > 10
    assert done == sorted(set(done))
    assert done[-1] == total
    assert {step for _, step, _ in job.told} == {total}


def test_csv_has_each_title_with_its_units() -> None:
    result = report("koeln-ehrenfeld", "csv")
    assert isinstance(result, File)
    assert isinstance(result.content, bytes)
    assert (result.content_type, result.name) == ("text/csv; charset=utf-8", "stock-koeln-ehrenfeld.csv")
    rows = list(csv.DictReader(io.StringIO(result.content.decode("utf-8"), newline="")))
    assert [(row["title_id"], int(row["units"]), int(row["reorder_level"])) for row in rows] == counted(
        "koeln-ehrenfeld"
    )
    assert all((row["low_stock"] == "yes") == (int(row["units"]) <= int(row["reorder_level"])) for row in rows)
    assert "L'Œuvre" in {row["title"] for row in rows}


def test_csv_of_nothing_is_a_header() -> None:
    assert csv_form([]) == (",".join(COLUMNS) + "\r\n").encode()


def test_pdf_is_a_whole_document_of_several_pages() -> None:
    result = report("muenchen-haidhausen", "pdf")
    assert isinstance(result, File)
    assert isinstance(result.content, bytes)
    assert (result.content_type, result.name) == ("application/pdf", "stock-muenchen-haidhausen.pdf")
    assert result.content.startswith(b"%PDF-1.")
    assert result.content.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", result.content)) >= 3


def test_pdf_of_the_same_stock_is_the_same_bytes() -> None:
    assert pdf_form(summary_of("hamburg-altona")) == pdf_form(summary_of("hamburg-altona"))


@pytest.mark.parametrize("branch", BRANCHES)
def test_pdf_has_a_glyph_for_every_letter(branch: str, caplog: pytest.LogCaptureFixture) -> None:
    pdf_form(summary_of(branch))
    assert [record.getMessage() for record in caplog.records if "missing" in record.getMessage()] == []


def test_pdf_names_its_letters_so_that_they_can_be_searched() -> None:
    """Each accented letter of the table stands in a font's map from glyphs to Unicode."""
    summary = summary_of("hamburg-altona")
    pdf = pdf_form(summary)
    accented = {letter for low in summary.low_stock for letter in low.title + low.author if ord(letter) > 127}
    assert accented
    assert [letter for letter in accented if f"<{ord(letter):04X}>".encode() not in pdf] == []


def test_pdf_of_an_empty_shop_says_so() -> None:
    summary = summary_of("hamburg-altona").model_copy(update={"genres": [], "low_stock": []})
    assert pdf_form(summary).startswith(b"%PDF-")


@pytest.mark.parametrize("form", ["json", "csv", "pdf"])
def test_an_unknown_branch_is_the_clients_fault(form: str) -> None:
    with pytest.raises(JobError) as refusal:
        report("atlantis", form)
    assert refusal.value.category is ErrorCategory.INVALID_INPUT
    assert refusal.value.code == "unknown-branch"
    assert not refusal.value.retryable
    assert "hamburg-altona" in refusal.value.detail


@pytest.mark.parametrize("branch", ["x", "Hamburg", "a" * 41, "ham burg", "", "köln"])
def test_a_request_takes_slugs_only(branch: str) -> None:
    with pytest.raises(ValidationError):
        StockReport.model_validate({"branch": branch})


def test_a_reorder_fills_up_what_is_low(tmp_path: Path) -> None:
    handler: Any = reorder
    placed: OrderPlaced = handler(Reorder(branch="berlin-kreuzberg"), FakeJob())
    low = {title: 2 * level - units for title, units, level in counted("berlin-kreuzberg") if units <= level}
    with (tmp_path / "orders" / f"{placed.order_number}.csv").open(encoding="utf-8") as file:
        assert {title: int(copies) for title, copies in csv.reader(file)} == low
    assert (placed.titles, placed.copies) == (len(low), sum(low.values()))


def test_the_supplier_takes_a_key_once(tmp_path: Path) -> None:
    lines = open_shop().stock["hamburg-altona"]
    supplier = Supplier(tmp_path)
    first = supplier.order("key", lines[:3])
    assert supplier.order("key", lines[3:9]) == first
    assert [path.name for path in tmp_path.iterdir()] == [f"{first}.csv"]
    assert len((tmp_path / f"{first}.csv").read_text().splitlines()) == 3
    assert supplier.order("another key", lines[:3]) != first


def test_the_operations_are_declared_as_the_guide_shows_them() -> None:
    reports = app.operations["reports"]
    assert (reports.path, reports.is_async, reports.returns_file) == ("/reports", True, True)
    assert (reports.policy.max_attempts, reports.policy.timeout_s) == (5, 120)
    assert reports.policy.retention.succeeded_s == 7 * 24 * 3600
    assert app.operations["reorders"].policy.is_key_required
