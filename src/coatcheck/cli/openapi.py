"""`coatcheck openapi`: the service's OpenAPI document, without starting it."""

import typer
from pydantic_core import to_json

from coatcheck.cli.loading import load_app_here
from coatcheck.cli.serve import AppRef
from coatcheck.http.openapi import build_openapi
from coatcheck.settings import Settings


def openapi(app_ref: AppRef, *, settings: Settings) -> None:
    """Print the OpenAPI 3.1 document of an app's service.

    Example:

      coatcheck openapi bookshop:app > openapi.json
    """
    document = build_openapi(load_app_here(app_ref), settings)
    typer.echo(to_json(document, indent=2, inf_nan_mode="null", fallback=str))
