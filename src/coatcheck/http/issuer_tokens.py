"""Reads the tokens of the identity provider that the settings name. Needs coatcheck[jwt]."""

from coatcheck.admission.credentials_jwt import TokenReader, TokenRules
from coatcheck.admission.issuer_keys import IssuerKeys
from coatcheck.http.key_set_source import key_set_source
from coatcheck.settings import Settings
from coatcheck.store.clock import Clock


def issuer_tokens(settings: Settings, clock: Clock) -> TokenReader:
    """A reader of tokens. Settings has made sure that issuer, audience and keys are there."""
    rules = TokenRules(
        issuer=settings.jwt_issuer or "",
        audience=settings.jwt_audience,
        algorithms=settings.jwt_algorithms,
        tenant_claim=settings.jwt_tenant_claim,
        scope_claim=settings.jwt_scope_claim,
        leeway_s=settings.jwt_leeway_s,
    )
    source = key_set_source(settings.jwt_keys or "")
    return TokenReader(rules, IssuerKeys(source, clock, rules.algorithms, settings.jwt_refresh_s), clock)
