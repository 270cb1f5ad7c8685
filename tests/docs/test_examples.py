"""What the pages show is what happens: code marked `run` runs, and transcripts marked `serve=` are compared."""

import importlib.util
import sys
from pathlib import Path

import pytest

from .pages import Fence, Page, pages
from .serving import serving, write_modules
from .transcripts import Curl, exchanges, missing_line


def _marked(mark: str) -> list[Page]:
    return [one for one in pages() if any(_mark(fence, mark) for fence in one.fences)]


def _mark(fence: Fence, mark: str) -> str | None:
    return next((word for word in fence.words[1:] if word.split("=")[0] == mark), None)


@pytest.mark.parametrize("one", _marked("run"), ids=lambda one: one.name)
def test_code_runs(one: Page, tmp_path: Path) -> None:
    for number, fence in enumerate(fence for fence in one.fences if _mark(fence, "run")):
        name = f"shown_{one.path.stem.replace('-', '_').lower()}_{number}"
        path = tmp_path / f"{name}.py"
        path.write_text(fence.code, "utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[name]


@pytest.mark.parametrize("one", _marked("serve"), ids=lambda one: one.name)
def test_transcripts_are_true(one: Page, tmp_path: Path) -> None:
    fences = [fence for fence in one.fences if _mark(fence, "serve")]
    refs = {str(_mark(fence, "serve")).removeprefix("serve=") for fence in fences}
    assert len(refs) == 1, f"{one.name} shows several servers"
    write_modules(one, tmp_path)
    faults = []
    with serving(refs.pop(), tmp_path) as server:
        curl = Curl(server.client)
        for fence in fences:
            for exchange in exchanges(fence.code):
                printed = curl.run(exchange.command)
                if (missing := missing_line(exchange.answer, printed)) is not None:
                    faults.append(f"{one.name}:{fence.line}: {exchange.command}\n  {missing}\nis not in\n{printed}")
    assert not faults, "\n\n".join(faults)


def test_a_wrong_transcript_is_noticed() -> None:
    printed = 'HTTP/1.1 202 Accepted\n{"id":"job_1","done":false}'
    assert missing_line(("HTTP/1.1 202 …", '{"id":"job_…",…}'), printed) is None
    assert missing_line(("HTTP/1.1 200 OK",), printed) == "HTTP/1.1 200 OK"
    assert missing_line(('{"id":"job_…"}',), printed) == '{"id":"job_…"}'
