"""The request that every peer validates; the same as in benchmarks.app."""

import os
from typing import Annotated

from pydantic import BaseModel, Field

STORE = os.environ.get("BENCH_STORE", "")
"""Where this peer keeps its jobs: a URL or a path, as it wants it."""


class Report(BaseModel):
    """A request of ordinary size."""

    branch: Annotated[str, Field(min_length=1, max_length=64)]
    shelves: Annotated[int, Field(ge=0, le=1000)]
    tags: list[str] = []
