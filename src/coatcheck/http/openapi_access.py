"""How a service's document tells who may call what. Where no authentication is configured, it tells nothing."""

from dataclasses import dataclass
from typing import Final

from coatcheck.core.scopes import Scope
from coatcheck.http.access import Access
from coatcheck.http.identity import VIEW_COOKIE
from coatcheck.http.openapi_schemas import Schema
from coatcheck.settings import Settings

_BEARER_KEY, _API_KEY, _TOKEN, _GATEWAY = "apiKeyBearer", "apiKeyHeader", "token", "gateway"
_VIEW_TOKEN, _VIEW_SESSION, _OPERATOR = "viewToken", "viewSession", "operator"
_GATEWAY_TEXT: Final = "Set by the gateway that authenticates you. From anybody else it counts for nothing."
_READ_ONLY: Final = ("get", "head")


@dataclass(frozen=True, slots=True)
class Doors:
    """The ways in that the settings allow, as security schemes, and the refusals that come with them."""

    settings: Settings

    @property
    def schemes(self) -> dict[str, Schema]:
        """The security schemes by name."""
        used = dict.fromkeys((*self._client_schemes(), *self._view_schemes("get"), *self._metrics_schemes()))
        described = self._described()
        return {name: described[name] for name in used}

    @property
    def operator_schemes(self) -> dict[str, Schema]:
        """Those that open the operators' API: the operators' own key, and keys with the scope `admin`."""
        keys = (_BEARER_KEY, _API_KEY) if "keys" in self.settings.auth else ()
        described = self._described()
        own = {**described[_OPERATOR], "description": "The operators' key, the setting `operator_key`."}
        return {_OPERATOR: own, **{name: described[name] for name in keys}}

    def security(self, access: Access, method: str = "get") -> Schema:
        """The member `security` of a route; nothing where it is open."""
        if access.is_metrics:
            names = self._metrics_schemes()
        elif access.scope is Scope.ADMIN:
            names = tuple(self.operator_schemes)
        elif access.scope is None:
            names = ()
        else:
            names = (*self._client_schemes(), *(self._view_schemes(method) if access.is_view else ()))
        return {"security": [{name: []} for name in names]} if names else {}

    def codes(self, access: Access) -> tuple[str, ...]:
        """The refusals of a route that come of who is asking."""
        if not self.security(access):
            return ("tenant-suspended",) if access.scope is Scope.SUBMIT else ()
        suspended = ("tenant-suspended",) if access.scope is Scope.SUBMIT else ()
        unavailable = ("identity-provider-unavailable",) if "jwt" in self.settings.auth else ()
        return ("unauthenticated", "forbidden", *suspended, *(() if access.is_metrics else unavailable))

    @property
    def has_views(self) -> bool:
        """Whether there are view tokens."""
        return self.settings.has_auth and bool(self.settings.signing_keys)

    def _client_schemes(self) -> tuple[str, ...]:
        ways = {"keys": (_BEARER_KEY, _API_KEY), "jwt": (_TOKEN,), "gateway": (_GATEWAY,)}
        return tuple(name for way in self.settings.auth for name in ways.get(way, ()))

    def _view_schemes(self, method: str) -> tuple[str, ...]:
        if not self.has_views:
            return ()
        return (_VIEW_TOKEN, _VIEW_SESSION) if method in _READ_ONLY else (_VIEW_TOKEN,)

    def _metrics_schemes(self) -> tuple[str, ...]:
        settings = self.settings
        is_closed = settings.metrics_key is not None or (settings.has_auth and not settings.metrics_open)
        return (_OPERATOR,) if is_closed else ()

    def _described(self) -> dict[str, Schema]:
        bearer = {"type": "http", "scheme": "bearer"}
        return {
            _BEARER_KEY: {**bearer, "description": "An API key, `cck_…`."},
            _API_KEY: _header("apikey", "An API key, in a header of its own."),
            _TOKEN: {**bearer, "bearerFormat": "JWT", "description": f"A token of {self.settings.jwt_issuer}."},
            _GATEWAY: _header(
                self.settings.gateway_header,
                "Set by the gateway that authenticates you. From anybody else it counts for nothing.",
            ),
            _VIEW_TOKEN: {**bearer, "description": "A view token, `cct_…`, for reading its job."},
            _VIEW_SESSION: {
                "type": "apiKey",
                "in": "cookie",
                "name": VIEW_COOKIE,
                "description": "The cookie of a view session, for reading its job.",
            },
            _OPERATOR: {**bearer, "description": "The key for metrics, or that of the operators."},
        }


def _header(name: str, description: str) -> Schema:
    return {"type": "apiKey", "in": "header", "name": name, "description": description}
