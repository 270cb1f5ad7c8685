"""What `make demo-reports` shows: an order and its export that commit together, and an order that takes both back."""

import signal
import sys
import tempfile
from pathlib import Path
from textwrap import indent
from typing import Any

import httpx
from rich.console import Console
from rich.markup import escape

from report_jobs.local_database import DatabaseFailed, local_database
from report_jobs.local_site import SiteFailed, local_site

ORDER = {
    "buyer": "Cobble Hill Gardens",
    "lines": [{"sku": "pea-sweet", "packets": 40}, {"sku": "tomato-black", "packets": 25}],
    "export": "csv",
}
TOO_MUCH = ORDER | {"lines": [{"sku": "foxglove-white", "packets": 10}, {"sku": "tomato-black", "packets": 900}]}


class DemoFailed(Exception):
    """The site answered something else than it should; the message says what in one sentence."""


class Buyer:
    """Somebody who orders at the site, and shows what is said."""

    def __init__(self, client: httpx.Client, console: Console) -> None:
        self._client = client
        self._console = console

    def order(self, order: dict[str, Any], status: int) -> dict[str, Any]:
        """Place an order that must be answered with this status."""
        self._console.print(f"  POST /orders  [dim]{escape(_in_short(order))}[/]", soft_wrap=True)
        answer = self._expect(self._client.post("/orders", json=order), status)
        self._console.print(f"  [bold]{status}[/]  {escape(answer.text)}\n", soft_wrap=True)
        placed: dict[str, Any] = answer.json()
        return placed

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Read what must be there."""
        self._console.print(f"  GET {path}")
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._expect(self._client.get(path, headers=given), 200)

    def show(self, text: str) -> None:
        self._console.print(escape(indent(text, "  ")), soft_wrap=True)

    def head(self, title: str, why: str) -> None:
        self._console.print(f"\n[bold]{title}[/]\n[dim]{why}[/]\n", soft_wrap=True)

    @staticmethod
    def _expect(answer: httpx.Response, status: int) -> httpx.Response:
        if answer.status_code == status:
            return answer
        request = answer.request
        raise DemoFailed(f"{request.method} {request.url.path} answered {answer.status_code}: {answer.text}")


def main() -> int:
    for hang_up in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(hang_up, signal.default_int_handler)
    console = Console(highlight=False)
    console.print(
        "Starting PostgreSQL from its wheel, and a FastAPI site that has its jobs at /jobs ...", soft_wrap=True
    )
    with tempfile.TemporaryDirectory(prefix="reports-") as name, tempfile.TemporaryDirectory(prefix="pg-") as data:
        log = Path(name) / "site.log"
        try:
            with (
                log.open("wb") as log_file,
                local_database(Path(data)) as database,
                local_site(Path(name), database, log_file) as url,
                httpx.Client(base_url=url, timeout=30) as client,
            ):
                tell_the_story(Buyer(client, console))
        except (DemoFailed, DatabaseFailed, SiteFailed, httpx.HTTPError, OSError) as failure:
            console.print(f"[bold red]The demo failed.[/] {escape(str(failure))}", soft_wrap=True)
            if log.exists():
                console.print(escape(f"The site's last words:\n{log.read_text('utf-8', 'replace')[-2000:]}"))
            return 1
        except KeyboardInterrupt:
            console.print("Stopped.")
            return 130
    console.print("\nNext: examples/report_jobs/README.md says what to read.")
    return 0


def tell_the_story(buyer: Buyer) -> None:
    """Order twice at the site and show each step.

    Raises:
        DemoFailed: the site answered something else than the story needs.
        httpx.HTTPError: it did not answer.
    """
    buyer.head(
        "Place an order", "The order, the stock it takes and the job of its export are committed by one transaction."
    )
    placed = buyer.order(ORDER, 201)
    job = buyer.get(placed["export_url"], Prefer="wait=20").json()
    buyer.show(f"{job['id']} {job['status']}")
    if job["status"] != "succeeded":
        raise DemoFailed(f"The export {job['status']}: {job['error']}")

    buyer.head("Collect the export", "The mounted service serves it, under the name that the handler gave it.")
    export = buyer.get(job["result_url"])
    buyer.show(export.text)

    buyer.head(
        "Order more than there is",
        "The export is handed in before the stock turns out too small; the rollback takes it back with the order.",
    )
    buyer.order(TOO_MUCH, 409)
    jobs = buyer.get("/jobs/exports").json()["jobs"]
    buyer.show(f"{len(jobs)} job: {', '.join(one['id'] for one in jobs)}")
    if [one["id"] for one in jobs] != [job["id"]]:
        raise DemoFailed("There is a job of an order that was never placed.")

    buyer.head("The same as JSON", "Each order has a job of its own.")
    placed = buyer.order(ORDER | {"export": "json"}, 201)
    job = buyer.get(placed["export_url"], Prefer="wait=20").json()
    buyer.show(buyer.get(job["result_url"]).text)


def _in_short(order: dict[str, Any]) -> str:
    lines = ", ".join(f"{line['packets']} of {line['sku']}" for line in order["lines"])
    return f"{order['buyer']}: {lines}, export as {order['export']}"


if __name__ == "__main__":
    sys.exit(main())
