"""Wake-ups: to listeners in this process at once, to other processes by datagrams to sockets beside the file.

A hint may be lost (a full socket, a process just born); everybody who waits polls as well.
"""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from coatcheck.store.records import WakeUp, WakeUpKind

DATAGRAM_IDS_MAX = 500
DATAGRAM_BYTES_MAX = 64 * 1024

Listener = Callable[[WakeUp], None]


class WakeUps:
    """Made and used on the event loop."""

    def __init__(self, path: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Listener] = []
        self._folder = Path(f"{path}-wake")
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._folder_fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(self._address(self._name))
        self._loop.add_reader(self._socket, self._receive)
        self._peers: Sequence[str] = ()
        self._peers_seen_at = -1

    def listen(self, callback: Listener) -> Callable[[], None]:
        """Call `callback` for each hint until the returned function is called."""
        self._listeners.append(callback)

        def stop() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(callback)

        return stop

    def publish(self, hints: set[tuple[WakeUpKind, str]]) -> None:
        """Give the hints of one commit to everyone, here and elsewhere."""
        wakeups = list(_gather(hints))
        for wakeup in wakeups:
            self._call(wakeup)
        for peer in self._find_peers():
            for wakeup in wakeups:
                self._send(peer, wakeup)

    def close(self) -> None:
        """Stop receiving and take the socket away."""
        self._loop.remove_reader(self._socket)
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name, dir_fd=self._folder_fd)
        os.close(self._folder_fd)

    def _address(self, name: str) -> str:
        # A socket's path may have at most 107 bytes; through the folder's descriptor it is always short.
        return f"/proc/self/fd/{self._folder_fd}/{name}"

    def _call(self, wakeup: WakeUp) -> None:
        for listener in tuple(self._listeners):
            listener(wakeup)

    def _find_peers(self) -> Sequence[str]:
        seen_at = os.fstat(self._folder_fd).st_mtime_ns
        if seen_at != self._peers_seen_at:
            # Listing takes a file descriptor; while there is none left, those known before are told.
            with contextlib.suppress(OSError):
                self._peers = [name for name in os.listdir(self._folder_fd) if name != self._name]
                self._peers_seen_at = seen_at
        return self._peers

    def _send(self, peer: str, wakeup: WakeUp) -> None:
        ids = wakeup.job_ids or ("",)
        for start in range(0, len(ids), DATAGRAM_IDS_MAX):
            text = "\n".join([wakeup.kind.value, *ids[start : start + DATAGRAM_IDS_MAX]])
            try:
                self._socket.sendto(text.encode(), self._address(peer))
            except BlockingIOError:
                return
            except (ConnectionRefusedError, FileNotFoundError):
                self._forget(peer)
                return
            except OSError:
                return

    def _forget(self, peer: str) -> None:
        """A socket that nobody reads belonged to a process that died."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(peer, dir_fd=self._folder_fd)
        self._peers_seen_at = -1

    def _receive(self) -> None:
        while True:
            try:
                datagram = self._socket.recv(DATAGRAM_BYTES_MAX)
            except BlockingIOError:
                return
            wakeup = _parse(datagram)
            if wakeup is not None:
                self._call(wakeup)


def _gather(hints: set[tuple[WakeUpKind, str]]) -> Sequence[WakeUp]:
    ids: dict[WakeUpKind, list[str]] = {}
    for kind, job_id in hints:
        ids.setdefault(kind, []).extend([job_id] if job_id else [])
    return [WakeUp(kind, tuple(job_ids)) for kind, job_ids in ids.items()]


def _parse(datagram: bytes) -> WakeUp | None:
    kind, *job_ids = datagram.decode("utf-8", "replace").split("\n")
    try:
        return WakeUp(WakeUpKind(kind), tuple(job_id for job_id in job_ids if job_id))
    except ValueError:
        return None
