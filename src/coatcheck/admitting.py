"""From settings to where the tokens of rates are kept. The client of a shared server is an extra."""

from importlib import import_module

from coatcheck.admission.buckets import LocalBuckets
from coatcheck.admission.shared_buckets import BucketServer, SharedBuckets
from coatcheck.authenticating import ExtraMissing
from coatcheck.observe.metrics import Metrics
from coatcheck.settings import Settings
from coatcheck.store.clock import Clock


def make_buckets(settings: Settings, app_name: str, clock: Clock, metrics: Metrics) -> LocalBuckets | SharedBuckets:
    """This process's own buckets, or those it shares with others of the app.

    Raises:
        ExtraMissing: `limits_store` is set, and its client is not installed.
    """
    local, url = LocalBuckets(clock), settings.limits_store
    if url is None:
        return local
    try:
        valkey = import_module("coatcheck.admission.valkey")
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"limits_store is set, and its client {error.name} is not installed; install coatcheck[valkey]."
        ) from error
    server: BucketServer = valkey.Valkey(url.get_secret_value(), app_name)
    return SharedBuckets(server, local, metrics)
