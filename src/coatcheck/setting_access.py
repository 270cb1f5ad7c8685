"""The settings that say how clients show who they are."""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator
from pydantic_settings import NoDecode

from coatcheck.setting_values import ACCESS, listed, setting

AuthWay: TypeAlias = Literal["none", "keys", "jwt", "gateway"]


def _ways(ways: tuple[AuthWay, ...]) -> tuple[AuthWay, ...]:
    if "none" in ways and len(ways) > 1:
        raise ValueError("some and none")
    return tuple(dict.fromkeys(ways))


AuthWays: TypeAlias = Annotated[tuple[AuthWay, ...], NoDecode, BeforeValidator(listed), AfterValidator(_ways)]


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

    @property
    def has_auth(self) -> bool:
        """Whether clients must show who they are."""
        return bool(self.auth) and self.auth != ("none",)
