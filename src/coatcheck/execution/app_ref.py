"""Finding the user's app by its reference, "module:attribute"."""

import importlib
from functools import reduce

from coatcheck.app import App


class AppNotFound(Exception):
    """The reference leads to no app; the message says why in one sentence."""


def load_app(app_ref: str) -> App:
    """Import the app.

    Raises:
        AppNotFound: the module cannot be imported, or there is no App of that name in it.
    """
    module_name, _, attribute = app_ref.partition(":")
    if not module_name or not attribute:
        raise AppNotFound(f"{app_ref!r} names no app; write MODULE:ATTRIBUTE, such as bookshop:app.")
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise AppNotFound(f"There is no module {error.name!r}, neither here nor where packages are.") from None
        text = " ".join(str(error).split()) or "no reason given"
        raise AppNotFound(f"The module {module_name!r} cannot be imported: {type(error).__name__}: {text}") from error
    try:
        app = reduce(getattr, attribute.split("."), module)
    except AttributeError:
        raise AppNotFound(f"The module {module_name!r} has no attribute {attribute!r}.") from None
    if not isinstance(app, App):
        raise AppNotFound(f"{app_ref!r} is a {type(app).__name__}, not a coatcheck App.")
    return app
