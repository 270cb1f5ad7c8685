"""No 202 without a sync: counted below SQLite always, and in a real server's system calls where strace is there."""

import asyncio
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coatcheck.testing.faults import FaultPoints
from coatcheck.testing.waiting import wait_until_async
from disk.edge import open_edge
from disk.file_layer import OK, Act, Call, laid
from harness.http import Client
from harness.server import Server

STRACE = shutil.which("strace")
BATCH = 40


class LogSyncs:
    """Counts the syncs of the log, and whether anything was written to it since the last one."""

    def __init__(self) -> None:
        self.count = 0
        self.has_unsynced = False

    def __call__(self, call: Call) -> int:
        if call.is_log:
            self.count += call.act is Act.SYNC
            self.has_unsynced = call.act is not Act.SYNC
        return OK


async def test_each_202_has_a_sync_of_the_log_before_it(path: Path) -> None:
    syncs = LogSyncs()
    with laid(syncs):
        async with open_edge(path) as client:
            for _ in range(20):
                before = syncs.count
                assert await client.submit() == 202
                assert syncs.count > before
                assert not syncs.has_unsynced


async def test_requests_that_come_together_share_a_sync(path: Path) -> None:
    syncs, points, may_sync = LogSyncs(), FaultPoints(), threading.Event()

    def hold(call: Call) -> int:
        may_sync.wait(30)
        return syncs(call)

    with laid(syncs) as layer:
        async with open_edge(path, points) as client:
            await client.submit()
            layer.watcher, before = hold, syncs.count
            answers = asyncio.gather(*(client.submit() for _ in range(BATCH)))
            await wait_until_async(lambda: points.count("request-read") == BATCH + 1, "every request to arrive")
            may_sync.set()
            assert await answers == [202] * BATCH
            assert 1 <= syncs.count - before <= 4


async def test_what_changes_nothing_costs_no_sync(path: Path) -> None:
    syncs = LogSyncs()
    with laid(syncs):
        async with open_edge(path) as client:
            await client.submit()
            await client.work()
            before = syncs.count
            await client.work()
            await client.read_all()
            assert syncs.count == before


@pytest.mark.skipif(STRACE is None, reason="strace is not installed; the syncs were counted below SQLite")
def test_the_kernel_saw_a_sync_before_each_202(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    server = Server(tmp_path, ["--roles", "api"])
    try:
        client = Client(server.start().url)
        with traced(server.process.pid, trace):
            for _ in range(20):
                client.submit("anything", {"a": 1})
        client.close()
        server.stop()
    finally:
        server.kill()
    assert syncs_before_answers(trace.read_text("utf-8", "replace")) == [True] * 20


@contextmanager
def traced(process: int, trace: Path) -> Iterator[None]:
    """Write the system calls of a process that read, send and sync."""
    assert STRACE is not None
    calls = "trace=fsync,fdatasync,recvfrom,read,sendto,sendmsg,write,writev"
    command = [STRACE, "-f", "-y", "-s", "64", "-e", calls, "-o", str(trace), "-p", str(process)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as tracer:
        assert tracer.stderr is not None
        if b"attached" not in tracer.stderr.readline():
            pytest.skip("strace may not attach here; the syncs were counted below SQLite")
        yield
        tracer.terminate()


def syncs_before_answers(trace: str) -> list[bool]:
    """For each 202 sent: whether a sync of the log began and ended since its request was read."""
    answers, is_syncing, is_synced = [], False, False
    for line in trace.splitlines():
        if re.search(r'(?:recvfrom|read)\(.*"POST /v1/anything', line):
            is_syncing = is_synced = False
        elif re.search(r"f(?:data)?sync\(\d+<[^>]*-wal>", line):
            is_syncing = True
            is_synced = is_synced or line.rstrip().endswith("= 0")
        elif "sync resumed>" in line and line.rstrip().endswith("= 0"):
            is_synced = is_synced or is_syncing
        elif '"HTTP/1.1 202' in line:
            answers.append(is_synced)
    return answers
