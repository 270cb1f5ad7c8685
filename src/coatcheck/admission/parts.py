"""What admission is made of, put together."""

from dataclasses import dataclass

from coatcheck.admission.buckets import LocalBuckets
from coatcheck.admission.directory import Directory
from coatcheck.admission.forecasts import Forecasts
from coatcheck.admission.gate import Gate
from coatcheck.admission.measures import Measures
from coatcheck.admission.rates import Rates
from coatcheck.admission.saturation import Saturation
from coatcheck.admission.shared_buckets import SharedBuckets
from coatcheck.store.clock import Clock
from coatcheck.store.queues import QueueStore


@dataclass(frozen=True, slots=True)
class AdmissionParts:
    """The rates and the gate, and what is known of the queues."""

    buckets: LocalBuckets | SharedBuckets
    rates: Rates
    measures: Measures
    forecasts: Forecasts
    gate: Gate

    def start(self) -> None:
        """Look after what is shared with other processes, on the running event loop."""
        if isinstance(self.buckets, SharedBuckets):
            self.buckets.start()

    async def stop(self) -> None:
        """Measure no more, and let go of what is shared."""
        await self.measures.close()
        if isinstance(self.buckets, SharedBuckets):
            await self.buckets.stop()


def make_admission(
    directory: Directory, buckets: LocalBuckets | SharedBuckets, store: QueueStore, clock: Clock
) -> AdmissionParts:
    """Admission by the limits and weights of the directory."""
    measures = Measures(store, clock)
    forecasts = Forecasts(measures, clock, lambda tenant: directory.tenant(tenant).weight)
    rates = Rates(directory, buckets)
    saturation = Saturation(directory, measures, forecasts, clock)
    return AdmissionParts(buckets, rates, measures, forecasts, Gate(rates, saturation, measures))
