"""The limits that hold unless an operator sets others: from the settings, and from the operations' declarations."""

from coatcheck.app import App
from coatcheck.core.costs import BUDGET
from coatcheck.core.quotas import ALL, EACH, LimitKey, LimitName
from coatcheck.settings import Settings


def limit_defaults(settings: Settings, app: App) -> dict[LimitKey, float | None]:
    """Each limit by its key. None: unlimited."""
    defaults: dict[LimitKey, float | None] = {
        (LimitName.SUBMIT_RATE, EACH, ALL): settings.tenant_submit_rate,
        (LimitName.SUBMIT_BURST, EACH, ALL): settings.tenant_submit_burst,
        (LimitName.READ_RATE, EACH, ALL): settings.tenant_read_rate,
        (LimitName.READ_BURST, EACH, ALL): settings.tenant_read_burst,
        (LimitName.QUEUED, EACH, ALL): settings.tenant_queued_max,
        (LimitName.RUNNING, EACH, ALL): settings.tenant_running_max,
        (LimitName.SUBMIT_RATE, ALL, ALL): settings.submit_rate,
        (LimitName.SUBMIT_BURST, ALL, ALL): settings.submit_burst,
        (LimitName.QUEUED, ALL, ALL): settings.queue_depth_max,
        (LimitName.AGE_S, ALL, ALL): settings.queue_age_max_s,
    }
    defaults |= {(BUDGET + budget.kind, EACH, ALL): budget.units for budget in settings.budgets}
    for operation in app.operations.values():
        policy = operation.policy
        defaults |= {(BUDGET + budget.kind, EACH, operation.name): budget.units for budget in policy.budgets.values()}
        defaults |= {
            (LimitName.SUBMIT_RATE, EACH, operation.name): policy.tenant_submit_rate,
            (LimitName.SUBMIT_BURST, EACH, operation.name): policy.tenant_submit_burst,
            (LimitName.QUEUED, EACH, operation.name): policy.tenant_queued_max,
            (LimitName.RUNNING, EACH, operation.name): policy.tenant_running_max,
            (LimitName.SUBMIT_RATE, ALL, operation.name): policy.submit_rate,
            (LimitName.SUBMIT_BURST, ALL, operation.name): policy.submit_burst,
            (LimitName.QUEUED, ALL, operation.name): policy.queue_depth_max,
            (LimitName.AGE_S, ALL, operation.name): policy.queue_age_max_s,
        }
    return defaults
