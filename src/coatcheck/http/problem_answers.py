"""Where a refusal becomes an answer: application/problem+json (RFC 9457), in one shape for all of them."""

from typing import Any

import orjson

from coatcheck.core.problems import Refused
from coatcheck.http.body import drain_body
from coatcheck.http.exchange import Exchange


async def answer_problem(exchange: Exchange, refused: Refused) -> None:
    """Answer with the problem, once the rest of the request's body is out of its way."""
    can_stay_open = await drain_body(exchange)
    headers = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in refused.headers]
    if not can_stay_open and str(exchange.scope.get("http_version", "1.1")).startswith("1"):
        headers.append((b"connection", b"close"))
    await exchange.answer(refused.status, b"application/problem+json", problem_body(exchange, refused), headers)


def problem_body(exchange: Exchange, refused: Refused) -> bytes:
    problem: dict[str, Any] = {
        "type": f"{exchange.urls.prefix}/problems/{refused.code}",
        "title": refused.kind.title,
        "status": refused.status,
        "detail": refused.detail,
        "code": refused.code,
        "correlation_id": exchange.correlation_id,
        **refused.members,
    }
    if refused.errors:
        problem["errors"] = [{"pointer": error.pointer, "detail": error.detail} for error in refused.errors]
    return orjson.dumps(problem)
