"""Transcripts in the docs: what stands behind `$ curl` is really asked, and what stands below it is compared.

`…` stands for anything. In a command, `job_…` is the job met last. An answer may leave out lines; their order counts.
"""

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

JOB_ID = re.compile(r"job_[0-9a-z]{28}")
SHOWN_SERVER = "localhost:8080"


@dataclass(frozen=True)
class Exchange:
    """One command and the lines the page shows as its answer."""

    command: str
    answer: tuple[str, ...]


def exchanges(transcript: str) -> Iterator[Exchange]:
    """The commands of a transcript, each with its answer."""
    command, answer = "", list[str]()
    for line in transcript.splitlines():
        if line.startswith("$ "):
            if command:
                yield Exchange(command, tuple(answer))
            command, answer = line.removeprefix("$ "), []
        elif line.strip():
            answer.append(line)
    if command:
        yield Exchange(command, tuple(answer))


class Curl:
    """As much of curl as the pages use, against one server."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._job_id = ""

    def run(self, command: str) -> str:
        """What curl would print.

        Raises:
            SystemExit: the command has an option this curl does not know.
        """
        request = parse_curl(command.replace("job_…", self._job_id))
        path = request.url.removeprefix(SHOWN_SERVER)
        assert path.startswith("/"), f"the page asks somebody else: {request.url}"
        response = self._client.request(request.method, path, headers=request.headers, content=request.body)
        found = JOB_ID.findall(response.text)
        self._job_id = found[0] if found else self._job_id
        return _head(response) + response.text if request.shows_head else response.text


@dataclass(frozen=True)
class CurlRequest:
    """A parsed command line."""

    method: str
    url: str
    headers: dict[str, str]
    body: str | None
    shows_head: bool


def parse_curl(command: str) -> CurlRequest:
    """Take a curl command line apart."""
    parser = argparse.ArgumentParser(prog="curl", add_help=False, allow_abbrev=False)
    parser.add_argument("url")
    parser.add_argument("-X", "--request")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("-i", "--include", action="store_true")
    parser.add_argument("-s", "--silent", action="store_true")
    parser.add_argument("-N", "--no-buffer", action="store_true")
    words = shlex.split(command)
    assert words[0] == "curl", f"not a curl command: {command}"
    parsed = parser.parse_args(words[1:])
    headers = dict(header.split(": ", 1) for header in parsed.header)
    if parsed.json is not None:
        json.loads(parsed.json)
        headers = {"Content-Type": "application/json", "Accept": "application/json"} | headers
    method = parsed.request or ("GET" if parsed.json is None else "POST")
    return CurlRequest(method, parsed.url, headers, parsed.json, parsed.include)


def missing_line(shown: tuple[str, ...], printed: str) -> str | None:
    """The first shown line that the answer does not have where it should, or None."""
    lines = iter(printed.splitlines())
    for expected in shown:
        pattern = re.compile(".*".join(re.escape(part) for part in expected.split("…")), re.IGNORECASE)
        if not any(pattern.fullmatch(line) for line in lines):
            return expected
    return None


def _head(response: httpx.Response) -> str:
    status = f"{response.http_version} {response.status_code} {response.reason_phrase}"
    # A page may show headers in any order; sorted here and there, they can be compared line by line.
    headers = sorted(f"{name.lower()}: {value}" for name, value in response.headers.items())
    return "\n".join([status, *headers, "", ""])
