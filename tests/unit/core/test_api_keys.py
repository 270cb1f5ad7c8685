"""API keys as text."""

import pytest

from coatcheck.core.api_keys import KEY_SECRET_CHARS, digest_of, key_id_of, make_key

SECRET = "Zz9" + "a" * (KEY_SECRET_CHARS - 3)


def test_a_key_is_known_by_its_id() -> None:
    key = make_key("0123456789ab", SECRET)
    assert key == f"cck_0123456789ab_{SECRET}"
    assert key_id_of(key.encode()) == "0123456789ab"


@pytest.mark.parametrize(
    ("key_id", "secret"), [("short", SECRET), ("0123456789ab", "x" * 39), ("0123456789a-", SECRET)]
)
def test_what_makes_no_key_is_refused(key_id: str, secret: str) -> None:
    with pytest.raises(ValueError, match="a key needs"):
        make_key(key_id, secret)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"cck_",
        b"cck_0123456789ab_",
        b"CCK_0123456789ab_" + SECRET.encode(),
        b"cck_0123456789ab_" + SECRET.encode() + b"\n",
        b"cck_0123456789ab_" + b"x" * 129,
        b"cck_0123456789ab_" + b"\xc3\xa9" * 22,
    ],
)
def test_other_text_is_no_key(text: bytes) -> None:
    assert key_id_of(text) is None


def test_what_is_kept_is_the_digest_of_the_whole_key() -> None:
    assert digest_of(b"cck_1") == "4175a6f50b9ffbf2d58039e499b00c99caea3d32b7b7cf2f55a6fc2107b43b52"
