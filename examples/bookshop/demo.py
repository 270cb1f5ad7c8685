"""What `make demo` shows: a stock report from hand-in to result, then the same report as a PDF."""

import signal
import sys
import tempfile
import uuid
from pathlib import Path

import httpx
from rich.console import Console

from bookshop.desk import DemoFailed, Desk
from bookshop.local_server import ServerFailed, free_port, local_server
from bookshop.screen import Screen
from bookshop.summary import StockSummary

BRANCH = "hamburg-altona"
AT_ONCE = ("--drain-delay", "0", "--grace", "2")
PDF = Path("out") / "stock-report.pdf"


def main() -> int:
    for hang_up in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(hang_up, signal.default_int_handler)
    screen = Screen(Console(highlight=False))
    screen.say("Opening the bookshop, with its jobs in a SQLite file of its own ...")
    with tempfile.TemporaryDirectory(prefix="bookshop-") as name:
        folder = Path(name)
        log = folder / "server.log"
        try:
            with log.open("wb") as log_file, local_server(folder, free_port(), log_file, AT_ONCE) as server:
                tell_the_story(server.url, screen)
        except httpx.HTTPError as failure:
            return fail(f"The server did not answer: {failure}.", log, screen)
        except (DemoFailed, ServerFailed, OSError) as failure:
            return fail(str(failure), log, screen)
        except KeyboardInterrupt:
            screen.say("Stopped.")
            return 130
    screen.say("Next: `make run` leaves the bookshop open for your own requests.")
    return 0


def tell_the_story(url: str, screen: Screen) -> None:
    """Hand in two reports at the server and show each step.

    Raises:
        DemoFailed: the server answered something else than the story needs.
        httpx.HTTPError: it did not answer.
    """
    with httpx.Client(base_url=url, timeout=30) as client:
        desk = Desk(client, screen)
        work = {"branch": BRANCH, "format": "json"}
        key = f"report-{uuid.uuid4().hex[:8]}"

        screen.head(
            "Hand in a stock report", "The 202 comes once the job is on disk: from then on it survives a crash."
        )
        job = desk.hand_in(work, key)
        screen.head("Watch it run", "One event for each change, over one open connection.")
        job = desk.follow(job)
        screen.head("Collect the result")
        screen.show_summary(StockSummary.model_validate(desk.result_of(job).json()))
        screen.head("Hand it in again", "The same key and the same work are the same job, not a second one.")
        desk.hand_in_again(work, key, job)
        screen.head("The same report as a PDF", "`Prefer: wait` holds the answer until the job is done.")
        job = desk.hand_in_and_wait(work | {"format": "pdf"})
        save_pdf(desk.result_of(job), screen)


def fail(sentence: str, log: Path, screen: Screen) -> int:
    screen.show_failure(sentence, log.read_text("utf-8", "replace"))
    return 1


def save_pdf(answer: httpx.Response, screen: Screen) -> None:
    if not answer.content.startswith(b"%PDF-"):
        raise DemoFailed("The result of the PDF report is no PDF.")
    PDF.parent.mkdir(exist_ok=True)
    PDF.write_bytes(answer.content)
    screen.say(f"Saved {len(answer.content):,} bytes of {answer.headers['content-type']} as [bold]{PDF}[/].")


if __name__ == "__main__":
    sys.exit(main())
