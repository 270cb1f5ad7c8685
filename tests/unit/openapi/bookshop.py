"""The app whose document and pages the tests read: every kind of request and result, and one hostile author."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from coatcheck.app import App
from coatcheck.core.files import File
from coatcheck.settings import Settings

HOSTILE = """</p><script>alert('x')</script> "quoted" & `<b>code</b>`

    <img src=x onerror=alert(1)> and *<i>emphasis</i>*
    """


class StockReport(BaseModel):
    """A stock report of one branch."""

    branch: Annotated[str, Field(pattern=r"^[a-z0-9-]{2,40}$", description="The branch's short name.")]
    format: Literal["json", "csv", "pdf"] = "json"
    units_min: Annotated[int, Field(ge=0, le=10_000)] = 0


class LowStock(BaseModel):
    title: str
    units: Annotated[int, Field(ge=0)]


class StockSummary(BaseModel):
    branch: str
    value: Annotated[float, Field(gt=0)]
    low_stock: Annotated[list[LowStock], Field(max_length=50)]
    by_shelf: dict[str, int] | None = None


class Book(BaseModel):
    kind: Literal["book"]
    isbn: Annotated[str, Field(min_length=10, max_length=13)]


class Gift(BaseModel):
    kind: Literal["gift"]
    wrap: bool = True


class Shelf(BaseModel):
    name: str
    shelves: list["Shelf"] = []


class Order(BaseModel):
    lines: list[Annotated[Book | Gift, Field(discriminator="kind")]]
    shelf: Shelf | None = None


OF_OPERATORS = ("conflict", "job-not-failed")
"""Codes that only routes of operators give, which the clients' document does not describe."""


def make_app() -> App:
    app = App("bookshop")

    @app.operation("reports", path="/reports", timeout="2m", retention="7d")
    async def stock_report(request: StockReport, job: Any) -> StockSummary | File:
        """Count a branch's stock.

        In chunks, with progress.
        """
        raise NotImplementedError

    @app.operation("order-imports", key_required=True, key_window="48h", priorities=(2, 7), deadline_max="24h")
    def import_orders(request: list[Order], job: Any) -> dict[str, int]:
        """Import orders."""
        raise NotImplementedError

    @app.operation("covers")
    def draw_cover(request: str, job: Any) -> File:
        raise NotImplementedError

    def hostile(request: dict[str, Any], job: Any) -> Any:
        raise NotImplementedError

    hostile.__doc__ = HOSTILE
    app.operation("hostile")(hostile)
    return app


def make_settings(**changes: Any) -> Settings:
    return Settings(**changes)


def guarded_settings() -> Settings:
    """Settings with every way to authenticate that there is."""
    return make_settings(
        auth="keys,jwt,gateway",
        jwt_issuer="https://login.example.org/",
        jwt_audience="jobs",
        jwt_keys="https://login.example.org/keys",
        gateway_networks="10.1.2.0/24",
        signing_keys="a-signing-key-that-is-only-for-the-tests",
    )
