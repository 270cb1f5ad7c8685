"""`coatcheck openapi`: the service's OpenAPI document, without starting it."""

import json

import typer

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
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
