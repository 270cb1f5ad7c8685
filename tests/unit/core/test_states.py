"""The life of a job, as a picture."""

import pytest

from coatcheck.core.states import FINAL, TRANSITIONS, Event, Status, target

# Each row an event, each column a status: the status after it, `.` where the move is illegal.
_PICTURE = """
                queued     running    succeeded  failed     cancelled
claim           running    .          .          .          .
progress        .          running    .          .          .
succeed         .          succeeded  .          .          .
fail            .          failed     .          .          .
retry           .          queued     .          .          .
release         .          queued     .          .          .
rescue          .          queued     .          .          .
expire          failed     .          .          .          .
cancel          cancelled  cancelled  .          .          .
request_cancel  .          running    .          .          .
erase           .          .          succeeded  failed     cancelled
redrive         .          .          .          failed     .
"""


def _from_picture() -> dict[tuple[Status, Event], Status | None]:
    heading, *rows = [line.split() for line in _PICTURE.strip().splitlines()]
    return {
        (Status(status), Event(row[0])): None if cell == "." else Status(cell)
        for row in rows
        for status, cell in zip(heading, row[1:], strict=True)
    }


def test_the_table_is_the_picture() -> None:
    picture = _from_picture()
    assert picture.keys() == {(status, event) for status in Status for event in Event}
    assert {pair: target(*pair) for pair in picture} == picture
    assert {pair: status for pair, status in picture.items() if status is not None} == TRANSITIONS


def test_final_is_final() -> None:
    assert {status for status in Status if status.is_final} == FINAL
    for (status, _), after in TRANSITIONS.items():
        assert status not in FINAL or after is status


@pytest.mark.parametrize("start", [Status.QUEUED, Status.RUNNING])
def test_every_end_is_within_reach(start: Status) -> None:
    reached = {start}
    for _ in Status:
        reached |= {after for (status, _), after in TRANSITIONS.items() if status in reached}
    assert reached == set(Status)
