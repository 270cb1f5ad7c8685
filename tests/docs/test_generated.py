"""What the reference takes from the code is as the code has it now."""

from .generated import REFERENCE, SECTIONS, refreshed, used


def test_generated_parts_are_fresh() -> None:
    texts = {path.name: path.read_text("utf-8") for path in REFERENCE.rglob("*.md")}
    stale = [name for name, text in texts.items() if text != refreshed(text)]
    assert not stale, f"run `python tests/docs/generated.py`; stale: {stale}"


def test_every_generated_part_is_shown_once() -> None:
    shown = [name for path in REFERENCE.rglob("*.md") for name in used(path.read_text("utf-8"))]
    assert sorted(shown) == sorted(SECTIONS)
