"""The settings that say how clients show who they are."""

import ipaddress
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from coatcheck.core import limits
from coatcheck.core.scopes import CLIENT_SCOPES, Scope
from coatcheck.setting_values import ACCESS, DURATION, Seconds, is_loopback, listed, secret, setting

AuthWay: TypeAlias = Literal["none", "keys", "jwt", "gateway"]
Algorithm: TypeAlias = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

FILE_PREFIX: Final = "file:"
_SECRET: Final = f"{limits.SECRET_CHARS_MIN} characters or more"
_EXAMPLE: Final = "write-a-long-random-secret-here-instead"
_HEADER_NAME: Final = r"^[A-Za-z0-9-]{1,64}$"
_CLAIM_CHARS_MAX: Final = 256


def _ways(ways: tuple[AuthWay, ...]) -> tuple[AuthWay, ...]:
    if "none" in ways and len(ways) > 1:
        raise ValueError("some and none")
    return tuple(dict.fromkeys(ways))


def _some(members: tuple[Any, ...]) -> tuple[Any, ...]:
    if not members:
        raise ValueError("none")
    return tuple(dict.fromkeys(members))


def _client_scopes(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    if not CLIENT_SCOPES.issuperset(scopes):
        raise ValueError("an operator's scope")
    return scopes


def _secrets(secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    lengths = [len(one.get_secret_value()) for one in secrets]
    if any(not limits.SECRET_CHARS_MIN <= length <= limits.SECRET_CHARS_MAX for length in lengths):
        raise ValueError("no secret")
    return secrets


def _key_set_place(place: str) -> str:
    if place.startswith(FILE_PREFIX):
        if not Path(place.removeprefix(FILE_PREFIX)).is_file():
            raise ValueError("no such file")
        return place
    parts = urlsplit(place)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    is_plain = place.isascii() and place.isprintable() and " " not in place
    if not (is_safe and is_plain and parts.hostname and parts.username is None and parts.port != 0):
        raise ValueError("no place to fetch keys from")
    return place


AuthWays: TypeAlias = Annotated[tuple[AuthWay, ...], NoDecode, BeforeValidator(listed), AfterValidator(_ways)]
Secrets: TypeAlias = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(listed), AfterValidator(_secrets)]
Algorithms: TypeAlias = Annotated[tuple[Algorithm, ...], NoDecode, BeforeValidator(listed), AfterValidator(_some)]
Texts: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(listed)]
Networks: TypeAlias = Annotated[tuple[Network, ...], NoDecode, BeforeValidator(listed)]
Scopes: TypeAlias = Annotated[
    tuple[Scope, ...], NoDecode, BeforeValidator(listed), AfterValidator(_some), AfterValidator(_client_scopes)
]
KeySetPlace: TypeAlias = Annotated[str, AfterValidator(_key_set_place)]


class AccessSettings(BaseModel):
    """Mixed into Settings."""

    auth: AuthWays = setting(
        (),
        ACCESS,
        '"none", or one or more of keys, jwt, gateway',
        'How clients show who they are. Write "none" to serve everyone who can reach the host and port as one tenant,'
        " without authentication.",
        "keys",
    )
    jwt_issuer: str | None = setting(
        None,
        ACCESS,
        "the `iss` of the tokens",
        "Who issues the tokens.",
        "https://login.example.org/",
        min_length=1,
        max_length=_CLAIM_CHARS_MAX,
    )
    jwt_audience: Texts = setting(
        (),
        ACCESS,
        "one or more values of `aud`",
        "For whom tokens are issued: what your provider calls this API.",
        "jobs",
    )
    jwt_keys: KeySetPlace | None = setting(
        None,
        ACCESS,
        "an https URL, an http URL of this machine, or file:PATH of a file that is there",
        "The issuer's public keys as a JSON Web Key Set (`jwks_uri`).",
        "https://login.example.org/.well-known/jwks.json",
    )
    jwt_algorithms: Algorithms = setting(
        ("RS256", "PS256", "ES256", "EdDSA"),
        ACCESS,
        "one or more of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA",
        "How tokens may be signed.",
    )
    jwt_tenant_claim: str = setting(
        "tenant",
        ACCESS,
        "the name of a claim",
        "The claim that names the tenant, which has to be one of the store.",
        min_length=1,
        max_length=_CLAIM_CHARS_MAX,
    )
    jwt_scope_claim: str = setting(
        "scope",
        ACCESS,
        "the name of a claim",
        "The claim that holds the scopes submit, read and cancel: a list, or a text with spaces between them.",
        min_length=1,
        max_length=_CLAIM_CHARS_MAX,
    )
    jwt_leeway_s: Seconds = setting(
        30.0, ACCESS, DURATION, "How far the issuer's clock and ours may be apart.", ge=0, le=300
    )
    jwt_refresh_s: Seconds = setting(
        300.0,
        ACCESS,
        DURATION,
        "How often the issuer's keys are fetched again; a token with a key that is not known asks for it earlier.",
        ge=10,
        le=86_400,
    )
    gateway_header: str = setting(
        "X-Consumer-Username",
        ACCESS,
        "the name of a header",
        "The header in which a gateway names the tenant it has authenticated.",
        pattern=_HEADER_NAME,
    )
    gateway_secrets: Secrets = secret(
        (),
        ACCESS,
        f"secrets of {_SECRET}, separated by commas",
        "What a gateway proves itself with, in `gateway_secret_header`; several while one takes the other's place.",
        _EXAMPLE,
    )
    gateway_secret_header: str = setting(
        "X-Gateway-Secret",
        ACCESS,
        "the name of a header",
        "The header in which a gateway sends its secret.",
        pattern=_HEADER_NAME,
    )
    gateway_networks: Networks = setting(
        (),
        ACCESS,
        "networks such as 10.1.2.0/24, separated by commas",
        "Peers whose connections come from here are the gateway, without a secret. Headers say nothing of that.",
        "10.1.2.0/24",
    )
    gateway_scopes: Scopes = setting(
        ("submit", "read", "cancel"),
        ACCESS,
        "one or more of submit, read, cancel",
        "What clients may do whom the gateway names.",
    )
    signing_keys: Secrets = secret(
        (),
        ACCESS,
        f"secrets of {_SECRET}, separated by commas",
        "What view tokens are signed with: the first signs, each verifies. Without one there are no view tokens.",
        _EXAMPLE,
    )
    metrics_key: SecretStr | None = secret(
        None,
        ACCESS,
        f"a secret of {_SECRET}",
        "What `/metrics` asks for as `Authorization: Bearer`.",
        _EXAMPLE,
        min_length=limits.SECRET_CHARS_MIN,
        max_length=limits.SECRET_CHARS_MAX,
    )
    metrics_open: bool = setting(
        False,
        ACCESS,
        "true or false",
        "Whether `/metrics` is for everyone although clients have to authenticate.",
    )

    @property
    def has_auth(self) -> bool:
        """Whether clients must show who they are."""
        return bool(self.auth) and self.auth != ("none",)


def access_fault(settings: AccessSettings) -> str | None:
    """What is wrong with the settings together, if anything."""
    if "jwt" in settings.auth:
        for name in ("jwt_issuer", "jwt_audience", "jwt_keys"):
            if not getattr(settings, name):
                return f"auth has jwt, but {name} is not set; set it, or take jwt out of auth."
    if "gateway" in settings.auth and not (settings.gateway_secrets or settings.gateway_networks):
        return (
            "auth has gateway, but neither gateway_secrets nor gateway_networks is set, so that anybody could pretend"
            " to be the gateway; set one of them."
        )
    if settings.metrics_open and settings.metrics_key is not None:
        return "metrics_open is true although metrics_key is set; remove one of them."
    return None
