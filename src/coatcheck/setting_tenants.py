"""The settings of tenants and of those who look after them."""

from pydantic import BaseModel, SecretStr

from coatcheck.core import limits
from coatcheck.core.tenancy import Revocation
from coatcheck.setting_values import TENANTS, secret, setting


class TenantSettings(BaseModel):
    """Mixed into Settings."""

    on_revoke: Revocation = setting(
        Revocation.QUARANTINE,
        TENANTS,
        "finish, quarantine, cancel or erase",
        "What becomes of the jobs of a tenant that is revoked without a named policy, in operations that declare none.",
        "cancel",
    )
    operator_key: SecretStr | None = secret(
        None,
        TENANTS,
        f"a secret of {limits.SECRET_CHARS_MIN} characters or more",
        "What operators send to `/admin` as `Authorization: Bearer`. Without it the admin API answers 404.",
        "write-a-long-random-secret-here-instead",
        min_length=limits.SECRET_CHARS_MIN,
        max_length=limits.SECRET_CHARS_MAX,
    )
