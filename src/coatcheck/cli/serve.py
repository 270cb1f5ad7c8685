"""`coatcheck serve`: the whole service, or some of its roles."""

from typing import Annotated

import typer

from coatcheck.cli.banner import print_banner
from coatcheck.cli.loading import load_app_here
from coatcheck.observe.logs import configure_logging
from coatcheck.runtime import Runtime
from coatcheck.serving import run_until_stopped
from coatcheck.settings import Settings

AppRef = Annotated[str, typer.Argument(metavar="MODULE:APP", help="Where the app is, such as bookshop:app.")]


def serve(app_ref: AppRef, *, settings: Settings) -> None:
    """Serve an app: API, workers, relay and upkeep in one process, with runners below it.

    Examples:

      coatcheck serve bookshop:app

      coatcheck serve bookshop:app --port 9000 --workers 2

      coatcheck serve bookshop:app --store sqlite:////srv/jobs/shop.db

      coatcheck serve bookshop:app --roles worker --metrics-port 9091

    The first Ctrl-C or SIGTERM drains: the API answers 503, running jobs get the grace time, the rest are given back.
    A second stops at once.
    """
    configure_logging(settings.log_format, settings.log_level)
    app = load_app_here(app_ref)
    runtime = Runtime(app, settings, app_ref)
    raise typer.Exit(run_until_stopped(runtime, lambda url: print_banner(app, settings, url)))
