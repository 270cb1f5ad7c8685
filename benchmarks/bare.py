"""A server of the same kind that does nothing: it reads the request and answers with the same bytes every time.

What it answers is a JSON file named by BENCH_BARE: {"status": 202, "headers": [[name, value], …], "body": "…"}.
"""

import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_answer = json.loads(Path(os.environ["BENCH_BARE"]).read_text("utf-8"))
_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in _answer["headers"]]
_start = {"type": "http.response.start", "status": _answer["status"], "headers": _headers}
_body = {"type": "http.response.body", "body": _answer["body"].encode("utf-8")}


async def app(scope: Message, receive: Receive, send: Send) -> None:
    """Read the body to its end and answer."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body", False):
        pass
    await send(_start)
    await send(_body)
