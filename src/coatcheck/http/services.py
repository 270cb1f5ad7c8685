"""What the edge is given: everything it calls, assembled elsewhere."""

from dataclasses import dataclass

from coatcheck.acceptance.acceptance import Acceptance
from coatcheck.admission.authentication import Authentication
from coatcheck.admission.credentials_views import ViewTokens
from coatcheck.admission.directory import Directory
from coatcheck.admission.rates import Rates
from coatcheck.app import App
from coatcheck.completion.estimates import Estimates
from coatcheck.completion.start_checks import StartChecks
from coatcheck.completion.watch import JobWatch
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.http.draining import DrainState
from coatcheck.observe.metrics import Metrics
from coatcheck.settings import Settings
from coatcheck.store.contract import Store


@dataclass(frozen=True, slots=True)
class HttpServices:
    """The edge's collaborators. Time comes from the store's clock.

    `authentication` may be left out where everybody is one tenant, of whom nothing is ever decided.
    """

    app: App
    store: Store
    acceptance: Acceptance
    watch: JobWatch
    estimates: Estimates
    start_checks: StartChecks
    metrics: Metrics
    settings: Settings
    directory: Directory
    draining: DrainState
    rates: Rates
    fault_point: FaultPoint = no_fault
    authentication: Authentication | None = None

    @property
    def views(self) -> ViewTokens | None:
        """What makes view tokens, where there are such."""
        return None if self.authentication is None else self.authentication.ways.views
