"""One end of the socket between control and a runner: frames out in one write a loop turn, frames in by the batch."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from coatcheck.core import limits
from coatcheck.execution.frames import HEADER, ToControl, ToRunner, append_frame

In = TypeVar("In")


class Channel(asyncio.Protocol, Generic[In]):
    """Frames over a stream socket.

    `on_frames` gets what arrived in one read; `on_closed` is called once, after everything that arrived was handed
    over. A peer that breaks the format is cut off. `is_congested` tells that the peer does not read.
    """

    def __init__(
        self,
        frame_type: Any,
        on_frames: Callable[[Sequence[In]], None],
        on_closed: Callable[[], None],
        on_drained: Callable[[], None] = lambda: None,
    ) -> None:
        self._decoder: msgspec.msgpack.Decoder[In] = msgspec.msgpack.Decoder(frame_type)
        self._on_frames = on_frames
        self._on_closed = on_closed
        self._on_drained = on_drained
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[ToRunner | ToControl] = []
        self._incoming = bytearray()
        self._needed = HEADER.size
        self.is_congested = False

    async def connect(self, sock: socket.socket) -> None:
        """Take over the socket."""
        await self._loop.create_unix_connection(lambda: self, sock=sock)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=limits.WRITE_BUFFER_BYTES_MAX)
        if self._outgoing:
            self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._outgoing.clear()
        self._on_closed()

    def pause_writing(self) -> None:
        self.is_congested = True

    def resume_writing(self) -> None:
        self.is_congested = False
        self._on_drained()

    def send(self, frame: ToRunner | ToControl) -> None:
        """Send with the other frames of this loop turn. A frame for a closed channel is dropped."""
        if not self._outgoing and self._transport is not None:
            self._loop.call_soon(self.flush)
        self._outgoing.append(frame)

    def flush(self) -> None:
        """Write what was gathered."""
        if self._transport is None or not self._outgoing:
            return
        buffer = bytearray()
        for frame in self._outgoing:
            append_frame(buffer, frame)
        self._outgoing.clear()
        self._transport.write(buffer)

    def close(self) -> None:
        """Write what was gathered, then close."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close without writing."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._incoming += data
        if len(self._incoming) < self._needed:
            return
        try:
            frames = self._take_frames()
        except (msgspec.MsgspecError, _FrameTooLarge):
            self.abort()
            return
        if frames:
            self._on_frames(frames)

    def _take_frames(self) -> list[In]:
        frames: list[In] = []
        position, length = 0, len(self._incoming)
        with memoryview(self._incoming) as view:
            while True:
                self._needed = HEADER.size
                if length - position < HEADER.size:
                    break
                size = HEADER.unpack_from(view, position)[0]
                if size > limits.FRAME_BYTES_MAX:
                    raise _FrameTooLarge
                self._needed += size
                if length - position < self._needed:
                    break
                start = position + HEADER.size
                with view[start : start + size] as body:
                    frames.append(self._decoder.decode(body))
                position = start + size
        del self._incoming[:position]
        return frames


class _FrameTooLarge(Exception):
    pass
