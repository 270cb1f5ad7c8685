"""A gateway that has authenticated its caller and names it in a header: when that header is to be believed.

Anybody can send a header. It counts only beside a secret that the gateway and we share, or from a peer, by the address
of its connection, in a network where there is nobody but gateways.
"""

import hmac
import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from coatcheck.core import limits

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAME: Final = re.compile(rb"[!-~]{1,%d}" % limits.TENANT_CHARS_MAX)


class GatewayTrust:
    """Decides whether a request comes from the gateway.

    Args:
        secrets: any of them proves it; two while one takes the other's place.
        networks: a peer in one of them is the gateway.
    """

    def __init__(self, secrets: Sequence[bytes], networks: Sequence[Network]) -> None:
        self._secrets = secrets
        self._networks = networks
        self._is_inside = lru_cache(maxsize=1024)(self._is_in_a_network)

    def is_proven(self, peer: str | None, shown: Sequence[bytes]) -> bool:
        """Whether this peer, or the one secret it shows, is the gateway's."""
        if peer is not None and self._networks and self._is_inside(peer):
            return True
        if len(shown) != 1:
            return False
        is_known = False
        for secret in self._secrets:
            is_known |= hmac.compare_digest(shown[0], secret)
        return is_known

    def _is_in_a_network(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def gateway_name(values: Sequence[bytes]) -> str | None:
    """The caller's name as the gateway gives it; None where it gives none, several, or what can be no name."""
    if len(values) != 1 or not _NAME.fullmatch(values[0]):
        return None
    return values[0].decode("ascii")
