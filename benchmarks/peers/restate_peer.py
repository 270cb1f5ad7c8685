"""Restate: its own server accepts and keeps; this is the service it calls. Its log is synced before it answers."""

from typing import Any

import restate

from benchmarks.peers.tally import tally

reports = restate.Service("reports")


@reports.handler()
async def run(context: restate.Context, request: dict[str, Any]) -> None:
    tally.add()


app = restate.app(services=[reports])
