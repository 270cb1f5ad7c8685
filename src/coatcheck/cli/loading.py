"""Finding the user's app the way `uvicorn` and `python` do: from the working directory."""

import os
import sys

from coatcheck.app import App
from coatcheck.execution.app_ref import load_app


def load_app_here(app_ref: str) -> App:
    """Import the app, looking in the working directory first.

    Raises:
        AppNotFound: see load_app.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    return load_app(app_ref)
