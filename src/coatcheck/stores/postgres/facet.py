"""What the parts of the engine share: transactions, the lanes of group commit, reads, the clock, the configuration."""

from structlog.stdlib import BoundLogger

from coatcheck.core.faults import FaultPoint
from coatcheck.store.clock import Clock
from coatcheck.stores.postgres.config import PostgresConfig
from coatcheck.stores.postgres.connections import Connections
from coatcheck.stores.postgres.readers import Readers
from coatcheck.stores.postgres.transaction import Transactions
from coatcheck.stores.postgres.wakeups import WakeUps
from coatcheck.stores.postgres.writer import Writer


class Facet:
    """The state of an open engine. Each part of the port is a subclass; the store is all of them.

    Lanes commit side by side: `_intake` what clients hand in, `_limited_intake` what has to be counted first, `_work`
    what workers do, `_claims` what they take where nothing bounds it, so that the next jobs run while the last ones are
    ended, and `_spends` what jobs spend: no heartbeat waits for a sum that another process adds to.
    """

    clock: Clock
    _config: PostgresConfig
    _fault_point: FaultPoint
    _connections: Connections
    _transactions: Transactions
    _intake: Writer
    _limited_intake: Writer
    _claims: Writer
    _work: Writer
    _spends: Writer
    _readers: Readers
    _wakeups: WakeUps
    _log: BoundLogger
