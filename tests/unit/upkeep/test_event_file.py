"""The channel `file:PATH`: whole lines of CloudEvents, whatever happened to the file before."""

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from coatcheck.completion.events.channel import ChannelRefused, ChannelUnavailable, EntryRefused
from coatcheck.completion.events.cloudevents import cloud_event, source_of
from coatcheck.completion.events.file import FileChannel
from coatcheck.core.events import EventType, OutboxEntry

AT_MS = 1_767_600_000_007


def entry(version: int = 1, data: bytes = b'{"status":"queued"}', tenant: str = "acme") -> OutboxEntry:
    return OutboxEntry(version, EventType.ACCEPTED, "job_1", tenant, "reports", version, AT_MS, "corr", data)


def events(path: Path) -> list[dict[str, Any]]:
    text = path.read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


async def opened(path: Path) -> FileChannel:
    channel = FileChannel(path, "bookshop")
    await channel.open()
    return channel


def test_an_entry_is_a_cloud_event() -> None:
    event = json.loads(cloud_event(entry(version=7, tenant="büro"), source_of("bookshop")))
    assert event == {
        "specversion": "1.0",
        "id": "job_1:7",
        "source": "urn:coatcheck:bookshop",
        "type": "coatcheck.job.accepted",
        "subject": "job_1",
        "time": "2026-01-05T08:00:00.007Z",
        "sequence": "0000000007",
        "tenant": "büro",
        "operation": "reports",
        "correlationid": "corr",
        "datacontenttype": "application/json",
        "data": {"status": "queued"},
    }
    assert all(re.fullmatch(r"[a-z0-9]{1,20}", name) for name in event)
    assert all(isinstance(value, str) for name, value in event.items() if name != "data")


def test_the_id_is_the_same_however_often_it_is_told() -> None:
    assert cloud_event(entry(), "urn:x") == cloud_event(entry(), "urn:x")


def test_an_event_without_data_names_no_content_type() -> None:
    assert "datacontenttype" not in json.loads(cloud_event(entry(data=b""), "urn:x"))


async def test_entries_are_appended_in_order(tmp_path: Path) -> None:
    channel = await opened(tmp_path / "events.jsonl")
    await channel.tell([entry(1), entry(2)])
    await channel.tell([entry(3)])
    await channel.close()
    assert [event["id"] for event in events(tmp_path / "events.jsonl")] == ["job_1:1", "job_1:2", "job_1:3"]


@pytest.mark.parametrize("half", ["", '{"id":"whole"}\n', '{"id":"whole"}\n{"id":"ha', '{"ha', "x" * 200_000])
async def test_a_half_line_is_taken_back(tmp_path: Path, half: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(half)
    channel = await opened(path)
    await channel.tell([entry()])
    await channel.close()
    ids = [event["id"] for event in events(path)]
    assert ids == (["whole", "job_1:1"] if "\n" in half else ["job_1:1"])


@pytest.mark.parametrize("can_take_back", [True, False])
async def test_a_full_disk_leaves_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_take_back: bool
) -> None:
    path = tmp_path / "events.jsonl"
    channel = await opened(path)
    await channel.tell([entry(1)])
    write, is_full = os.write, [True]

    def write_half(file: int, data: bytes) -> int:
        if is_full and is_full.pop():
            return write(file, bytes(data)[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    def fail(file: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "write", write_half)
    if not can_take_back:
        monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(ChannelUnavailable, match="No space left"):
        await channel.tell([entry(2)])
    monkeypatch.undo()
    await channel.tell([entry(2)])
    await channel.close()
    assert [event["id"] for event in events(path)] == ["job_1:1", "job_1:2"]


async def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    channel = await opened(path)
    await channel.tell([entry(1)])
    path.rename(tmp_path / "events.1")
    await channel.tell([entry(2)])
    await channel.close()
    assert [event["id"] for event in events(path)] == ["job_1:2"]
    assert [event["id"] for event in events(tmp_path / "events.1")] == ["job_1:1"]


async def test_an_entry_that_is_no_json_is_refused_alone(tmp_path: Path) -> None:
    channel = await opened(tmp_path / "events.jsonl")
    with pytest.raises(EntryRefused, match="job_1"):
        await channel.tell([entry(data=b"{")])
    await channel.tell([entry()])
    await channel.close()


@pytest.mark.parametrize("name", ["missing/events.jsonl", ".", "pipe"])
async def test_what_is_no_ordinary_file_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ChannelRefused, match="cannot be written"):
        await opened(tmp_path / name)
