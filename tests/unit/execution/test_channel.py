"""Frames over a socket pair: whole, in order, however they are cut; what breaks the format is cut off."""

import asyncio
import socket
from collections.abc import Sequence

import pytest

from coatcheck.core import limits
from coatcheck.execution.channel import Channel
from coatcheck.execution.frames import HEADER, Done, Ready, Returned, Stop, ToControl, ToRunner, to_bytes


class End:
    """A channel with what it heard."""

    def __init__(self) -> None:
        self.heard: list[ToControl] = []
        self.closed = asyncio.Event()
        self.news = asyncio.Event()
        self.channel: Channel[ToControl] = Channel(ToControl, self._on_frames, self.closed.set)

    def _on_frames(self, frames: Sequence[ToControl]) -> None:
        self.heard += frames
        self.news.set()

    async def wait_heard(self, count: int) -> Sequence[ToControl]:
        while len(self.heard) < count:
            self.news.clear()
            await self.news.wait()
        return self.heard


async def connected() -> tuple[End, socket.socket]:
    end = End()
    ours, theirs = socket.socketpair()
    await end.channel.connect(ours)
    theirs.setblocking(False)
    return end, theirs


async def test_frames_arrive_whole_however_they_are_cut() -> None:
    end, theirs = await connected()
    frames: list[ToControl] = [
        Ready(),
        Done(7, Returned("text/plain", b"x" * 5000, None)),
        Done(8, Returned("a/b", b"", "f")),
    ]
    data = b"".join(to_bytes(frame) for frame in frames)
    loop = asyncio.get_running_loop()
    with theirs:
        for start in range(0, len(data), 777):
            await loop.sock_sendall(theirs, data[start : start + 777])
        assert await end.wait_heard(3) == frames
    await end.closed.wait()


async def test_frames_of_one_turn_go_out_in_order() -> None:
    end, theirs = await connected()
    other_heard: list[ToRunner] = []
    done = asyncio.Event()

    def on_frames(frames: Sequence[ToRunner]) -> None:
        other_heard.extend(frames)
        if len(other_heard) == 100:
            done.set()

    other: Channel[ToRunner] = Channel(ToRunner, on_frames, lambda: None)
    await other.connect(theirs)
    for seq in range(100):
        end.channel.send(Stop(seq))
    await done.wait()
    assert other_heard == [Stop(seq) for seq in range(100)]
    other.close()
    await end.closed.wait()


@pytest.mark.parametrize(
    "data",
    [HEADER.pack(limits.FRAME_BYTES_MAX + 1), HEADER.pack(3) + b"\xc1\xc1\xc1", to_bytes(Stop(1))],
    ids=["too large", "no frame", "a frame of the other direction"],
)
async def test_who_breaks_the_format_is_cut_off(data: bytes) -> None:
    end, theirs = await connected()
    with theirs:
        await asyncio.get_running_loop().sock_sendall(theirs, data)
        await end.closed.wait()
    assert end.heard == []


async def test_a_peer_that_does_not_read_is_noticed() -> None:
    end, theirs = await connected()
    body = b"x" * limits.WRITE_BUFFER_BYTES_MAX
    end.channel.send(Done(1, Returned("a/b", body, None)))
    end.channel.send(Done(2, Returned("a/b", body, None)))
    end.channel.flush()
    assert end.channel.is_congested
    end.channel.abort()
    with theirs:
        await end.closed.wait()


async def test_what_is_sent_to_a_closed_channel_is_dropped() -> None:
    end, theirs = await connected()
    theirs.close()
    await end.closed.wait()
    end.channel.send(Stop(1))
    end.channel.flush()
    end.channel.close()
