"""What the parts of the engine share: the writer, the readers, the clock and the configuration."""

from coatcheck.core.faults import FaultPoint
from coatcheck.store.clock import Clock
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.readers import Readers
from coatcheck.stores.sqlite.wakeups import WakeUps
from coatcheck.stores.sqlite.writer import Writer


class Facet:
    """The state of an open engine. Each part of the port is a subclass; the store is all of them."""

    clock: Clock
    _config: SqliteConfig
    _fault_point: FaultPoint
    _writer: Writer
    _readers: Readers
    _wakeups: WakeUps
