"""May this operation take work of this tenant now? As operators decided."""

from coatcheck.admission.directory import Directory
from coatcheck.core import limits
from coatcheck.core.problems import Refused
from coatcheck.core.tenancy import OperationMode


async def require_taking(directory: Directory, operation: str, tenant: str) -> None:
    """Return if the operation takes work, and the tenant may hand it in.

    Raises:
        Refused: `draining` or `tenant-suspended`.
        StoreUnavailable: nobody knows.
    """
    if not directory.is_confirmed:
        await directory.confirmed()
    controls = directory.controls
    control = controls.tenants.get(tenant)
    if control is not None and not control.may_submit:
        raise Refused("tenant-suspended", "No new work is taken for this tenant.")
    if controls.modes.get(operation) is OperationMode.DRAINING:
        detail = f"The operation {operation!r} finishes what it has and takes no new work now."
        raise Refused("draining", detail, headers=[("Retry-After", str(limits.RETRY_AFTER_S_MAX))])
