"""What admission is made of, put together."""

from dataclasses import dataclass

from coatcheck.admission.buckets import Buckets
from coatcheck.admission.directory import Directory
from coatcheck.admission.forecasts import Forecasts
from coatcheck.admission.gate import Gate
from coatcheck.admission.measures import Measures
from coatcheck.admission.rates import Rates
from coatcheck.admission.saturation import Saturation
from coatcheck.store.clock import Clock
from coatcheck.store.contract import ReadingStore


@dataclass(frozen=True, slots=True)
class AdmissionParts:
    """The rates and the gate, and what is known of the queues."""

    rates: Rates
    measures: Measures
    forecasts: Forecasts
    gate: Gate


def make_admission(directory: Directory, buckets: Buckets, store: ReadingStore, clock: Clock) -> AdmissionParts:
    """Admission by the limits and weights of the directory."""
    measures = Measures(store, clock)
    forecasts = Forecasts(measures, clock, lambda tenant: directory.tenant(tenant).weight)
    rates = Rates(lambda: directory.book, buckets)
    saturation = Saturation(lambda: directory.book, measures, forecasts, clock)
    return AdmissionParts(rates, measures, forecasts, Gate(rates, saturation, measures))
