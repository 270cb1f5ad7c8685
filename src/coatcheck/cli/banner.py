"""What `coatcheck serve` shows when it has started."""

from rich.console import Console
from rich.text import Text

from coatcheck.app import App
from coatcheck.cli.version import coatcheck_version
from coatcheck.settings import Settings

_NAME_WIDTH = 12
_SUMMARY_CHARS_MAX = 60


def print_banner(app: App, settings: Settings, url: str | None, console: Console | None = None) -> None:
    """Tell where everything is. `url`: what the server listens on, None for nothing."""
    console = Console(highlight=False, soft_wrap=True) if console is None else console
    console.print()
    console.print(Text.assemble(("Coatcheck", "bold"), f" ({coatcheck_version()}) serves ", (app.name, "bold")))
    for name, value in _facts(app, settings, url):
        console.print(Text.assemble((f"  {name}".ljust(_NAME_WIDTH), "dim"), value))
    console.print(f"\n  Ctrl-C drains: running jobs have {settings.grace_s:g} s to finish. Twice stops at once.\n")


def _facts(app: App, settings: Settings, url: str | None) -> list[tuple[str, Text]]:
    is_api = "api" in settings.roles
    facts = [(name, Text(value, "cyan")) for name, value in _places(settings, url, is_api)]
    if is_api:
        facts.append(("Access", Text(_access(settings))))
    facts += [("Store", Text(settings.store_name)), ("Roles", Text(", ".join(settings.roles)))]
    if "worker" in settings.roles:
        runners = f"{settings.workers}, with up to {settings.concurrency} attempts at once in each"
        facts.append(("Runners", Text(runners)))
    if settings.events is not None:
        facts.append(("Events", Text(settings.events)))
    return facts + (_operations(app) if is_api else [])


def _operations(app: App) -> list[tuple[str, Text]]:
    width = max((len(operation.path) for operation in app.operations.values()), default=0)
    return [
        ("Operation", Text.assemble(("POST ", "green"), one.path.ljust(width), (f"  {_shortened(one.summary)}", "dim")))
        for one in app.operations.values()
    ]


def _access(settings: Settings) -> str:
    return ", ".join(settings.auth) if settings.has_auth else "everybody who can reach it, without authentication"


def _places(settings: Settings, url: str | None, is_api: bool) -> list[tuple[str, str]]:
    if url is None:
        return []
    if not is_api:
        return [("Metrics", f"{url}/metrics")]
    public = [] if settings.public_url is None else [("Clients", settings.public_url)]
    return [("API", url), *public, ("Docs", f"{url}/docs"), ("Metrics", f"{url}/metrics")]


def _shortened(text: str) -> str:
    return text if len(text) <= _SUMMARY_CHARS_MAX else text[: _SUMMARY_CHARS_MAX - 3] + "..."
