"""The `coatcheck` command. What goes wrong is told in one sentence on standard error, and the exit code is 2."""

import sys
import traceback

import typer

from coatcheck.cli.audit import audit
from coatcheck.cli.check import check
from coatcheck.cli.config import config
from coatcheck.cli.db import db
from coatcheck.cli.dead_letters import dead_letters
from coatcheck.cli.flags import with_settings
from coatcheck.cli.help_texts import use_docstrings
from coatcheck.cli.job_filters import BadOption
from coatcheck.cli.jobs import jobs
from coatcheck.cli.keys import keys
from coatcheck.cli.limits import limits
from coatcheck.cli.openapi import openapi
from coatcheck.cli.operations import operations
from coatcheck.cli.operator import STORE_SETTINGS
from coatcheck.cli.serve import serve
from coatcheck.cli.tenants import tenants
from coatcheck.cli.version import print_version
from coatcheck.core.problems import Refused
from coatcheck.execution.app_ref import AppNotFound, load_app
from coatcheck.operators.faults import IMPOSSIBLE
from coatcheck.runtime import StartRefused
from coatcheck.setting_file import SettingsError
from coatcheck.store.errors import StoreRefused, StoreUnavailable

EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130
_LOADER = load_app.__code__.co_filename
_REFUSALS = (BadOption, SettingsError, StartRefused, StoreRefused, StoreUnavailable)

cli = typer.Typer(
    name="coatcheck",
    help="Turn a Python function into a durable asynchronous HTTP API: hand in work, keep the ticket, come back.",
    epilog="Start with: coatcheck serve MODULE:APP. Each command tells more with --help.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


for _command in (serve, check, openapi):
    cli.command()(with_settings(_command))
cli.add_typer(tenants, name="tenants")
cli.add_typer(keys, name="keys")
cli.add_typer(limits, name="limits")
cli.add_typer(operations, name="operations")
cli.add_typer(jobs, name="jobs")
cli.add_typer(dead_letters, name="dead-letters")
cli.command()(with_settings(audit, STORE_SETTINGS))
cli.add_typer(db, name="db")
cli.command()(config)
cli.command("version")(print_version)
use_docstrings(cli)


def main() -> None:
    """Run the command line and end the process."""
    try:
        code = cli(prog_name="coatcheck", standalone_mode=False)
    except AppNotFound as error:
        sys.exit(_refused(f"{error}{_place(error.__cause__)}"))
    except Refused as error:
        sys.exit(_refused(_told(error)))
    except _REFUSALS as error:
        sys.exit(_refused(str(error)))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        told = getattr(error, "format_message", None)
        if told is None:
            raise
        sys.exit(_refused(str(told())))
    sys.exit(code if isinstance(code, int) else 0)


def _place(cause: BaseException | None) -> str:
    """Where in the user's module an import went wrong."""
    frames = [] if cause is None else traceback.extract_tb(cause.__traceback__)
    ours = [frame for frame in frames if not frame.filename.startswith("<frozen") and frame.filename != _LOADER]
    return f" ({ours[-1].filename}, line {ours[-1].lineno})" if ours and isinstance(cause, Exception) else ""


def _told(refused: Refused) -> str:
    """What an operator's wish was refused for: the arguments by their names, or the places in a body."""
    if refused.detail == IMPOSSIBLE:
        return "; ".join(f"{fault.pointer.lstrip('/')}: {fault.detail}" for fault in refused.errors)
    faults = "; ".join(f"{fault.pointer or 'the body'}: {fault.detail}" for fault in refused.errors)
    return f"{refused.detail} ({faults})" if faults else refused.detail


def _refused(sentence: str) -> int:
    typer.echo(f"coatcheck: {sentence}", err=True)
    return EXIT_REFUSED
