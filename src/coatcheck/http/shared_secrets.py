"""Secrets of the settings that requests are compared with: those of operators, and of what reads metrics."""

import hmac

from pydantic import SecretStr

from coatcheck.settings import Settings


class SharedSecrets:
    """Some secrets, each of which opens the same door."""

    def __init__(self, *settings: SecretStr | None) -> None:
        self._secrets = [secret.get_secret_value().encode() for secret in settings if secret is not None]

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def have(self, token: bytes) -> bool:
        """Whether this is one of them. It takes as long whichever it is, and whether or not."""
        is_known = False
        for secret in self._secrets:
            is_known |= hmac.compare_digest(token, secret)
        return is_known


def are_metrics_open(settings: Settings) -> bool:
    """Whether `/metrics` is for everyone."""
    return settings.metrics_open or (not settings.has_auth and settings.metrics_key is None)


def metrics_secrets(settings: Settings) -> SharedSecrets:
    """What opens `/metrics` where it is not for everyone."""
    return SharedSecrets(settings.metrics_key, settings.operator_key)
