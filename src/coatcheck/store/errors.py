"""What a store can refuse, one class for each decision a caller can take."""


class StoreError(Exception):
    """Anything the store refuses or cannot do."""


class StoreUnavailable(StoreError):
    """The store cannot answer now (disk full, I/O error, lost connection); try again later.

    Nothing was written. Only where a connection is lost while a commit is under way nobody knows; a repeat finds what
    is there.
    """


class StoreRefused(StoreError):
    """The store must not be opened by this build or this app; the message says why in one sentence."""


class LeaseLost(StoreError):
    """The lease named by a worker's write is no longer its own. Nothing was written, nothing will be."""
