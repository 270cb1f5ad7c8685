"""A layer between SQLite and its files: sees every write and sync, and may fail any of them.

apsw's own file classes know no shared memory, which WAL needs. So SQLite's file methods are wrapped where they stand:
while a layer is laid, the open function of the default file system hands out files with our write, sync and truncate
in front of the real ones. Everything else, locks and shared memory too, stays SQLite's.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import apsw

OK = apsw.SQLITE_OK


class Act(StrEnum):
    """What SQLite does to a file."""

    WRITE = "write"
    SYNC = "sync"
    TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True)
class Call:
    """One call before it happens. `offset` is the new size where the act is to truncate."""

    act: Act
    path: str
    offset: int = 0
    content: bytes = b""

    @property
    def is_log(self) -> bool:
        return self.path.endswith("-wal")


Watcher: TypeAlias = Callable[[Call], int]
"""Told of each call; returns OK to let it happen, or the SQLite error that it shall end with instead."""

# SQLite keeps the name it hands over and reads on behind its end: the pointer itself must reach the real function.
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _FileSystem(ctypes.Structure):
    """The beginning of a sqlite3_vfs."""

    _fields_ = (
        ("iVersion", c_int),
        ("szOsFile", c_int),
        ("mxPathname", c_int),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        ("xOpen", _Open),
    )


class _Methods(ctypes.Structure):
    """A sqlite3_io_methods."""

    _fields_ = (
        ("iVersion", c_int),
        ("xClose", c_void_p),
        ("xRead", c_void_p),
        ("xWrite", _Write),
        ("xTruncate", _Truncate),
        ("xSync", _Sync),
        ("others", c_void_p * 13),
    )


class _File(ctypes.Structure):
    """The beginning of a sqlite3_file."""

    _fields_ = (("pMethods", POINTER(_Methods)),)


class FileLayer:
    """Wraps every file that is opened while it is laid. Files opened before keep SQLite's own methods."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self._names: dict[int, str] = {}
        self._real: dict[int, Any] = {}
        self._file_system = _find_file_system()
        # ctypes hands out a new object for the field each time: the address must be kept, not the field.
        self._real_open = _Open(ctypes.cast(self._file_system.xOpen, c_void_p).value or 0)
        self._open_hook = _Open(self._open)
        self._write_hook = _Write(self._write)
        self._truncate_hook = _Truncate(self._truncate)
        self._sync_hook = _Sync(self._sync)
        self._kept: list[_Methods] = []

    def lay(self) -> None:
        self._file_system.xOpen = self._open_hook

    def lift(self) -> None:
        """Files already wrapped stay so: keep the layer until they are closed."""
        self._file_system.xOpen = self._real_open

    def _open(self, file_system: int, name: int | None, address: int, flags: int, flags_out: int) -> int:
        code: int = self._real_open(file_system, name, address, flags, flags_out)
        file = _File.from_address(address)
        if code == OK and name is not None and file.pMethods:
            real = file.pMethods.contents
            mine = _Methods.from_buffer_copy(real)
            mine.xWrite, mine.xTruncate, mine.xSync = self._write_hook, self._truncate_hook, self._sync_hook
            self._kept.append(mine)
            self._names[address] = os.fsdecode(ctypes.string_at(name))
            self._real[address] = real
            file.pMethods = ctypes.pointer(mine)
        return code

    def _write(self, file: int, content: int, size: int, offset: int) -> int:
        code = self.watcher(Call(Act.WRITE, self._names[file], offset, ctypes.string_at(content, size)))
        return code or int(self._real[file].xWrite(file, content, size, offset))

    def _truncate(self, file: int, size: int) -> int:
        code = self.watcher(Call(Act.TRUNCATE, self._names[file], size))
        return code or int(self._real[file].xTruncate(file, size))

    def _sync(self, file: int, flags: int) -> int:
        code = self.watcher(Call(Act.SYNC, self._names[file]))
        return code or int(self._real[file].xSync(file, flags))


@contextmanager
def laid(watcher: Watcher) -> Iterator[FileLayer]:
    """A layer under every file that is opened inside the block; they must be closed before it ends."""
    layer = FileLayer(watcher)
    layer.lay()
    try:
        yield layer
    finally:
        layer.lift()


def _find_file_system() -> _FileSystem:
    connection = apsw.Connection(":memory:")
    address = c_void_p()
    assert connection.file_control("main", apsw.SQLITE_FCNTL_VFS_POINTER, ctypes.addressof(address))
    connection.close()
    assert address.value is not None
    return _FileSystem.from_address(address.value)
