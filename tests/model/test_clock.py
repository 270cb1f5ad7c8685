"""The clock: a wall clock that is set makes nobody's time jump, and all processes of a machine agree on the time."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.store.clock import ADJUSTED_NS, HELD_NS, SETTLING_NS, SLOWNESS, STEP_NS, ClockMark, SystemClock
from coatcheck.stores.sqlite.clock_file import ClockFile

from .machine_clocks import NS, FakeMachine

HOUR_S, DAY_S = 3600, 86_400
STEPS_S = (1, -1, HOUR_S, -HOUR_S, DAY_S, -DAY_S)
STEP_MS = STEP_NS // 1_000_000

steps = pytest.mark.parametrize("step_s", STEPS_S)


def test_a_clock_that_nobody_sets_is_the_wall_clock() -> None:
    machine = FakeMachine()
    clock = SystemClock(machine=machine.clocks)
    for _ in range(50):
        machine.pass_time(1000.123)
        assert clock.now() == machine.wall_ms
        assert clock.now_us() // 1000 == machine.wall_ms
    assert clock.monotonic_s() == machine.uptime_s


def test_the_machines_own_clock_can_be_read() -> None:
    first, second = SystemClock().now_us(), SystemClock().now_us()
    assert 0 <= second - first < 60_000_000


def test_small_corrections_are_followed_at_once() -> None:
    machine = FakeMachine()
    clock = SystemClock(machine=machine.clocks)
    for correction_s in (0.1, -0.1, 0.2, -0.2):
        clock.now()
        machine.set_wall_by(correction_s)
        assert clock.now() == machine.wall_ms


@steps
def test_a_step_is_made_up_a_tenth_at_a_time(step_s: int) -> None:
    machine, told = FakeMachine(), list[float]()
    clock = SystemClock(on_step=told.append, machine=machine.clocks)
    before = clock.now()
    machine.set_wall_by(step_s)
    assert clock.now() == before
    half_s = abs(step_s) * SLOWNESS / 2
    machine.pass_time(half_s)
    assert clock.now() - before == pytest.approx((half_s + step_s / 2) * 1000, abs=1)
    machine.pass_time(half_s + 0.001)
    assert clock.now() == machine.wall_ms
    machine.pass_time(5.0)
    assert clock.now() == machine.wall_ms
    assert told == [step_s]


@steps
def test_a_step_that_is_taken_back_leaves_what_it_made_up_to_be_made_up_again(step_s: int) -> None:
    machine = FakeMachine()
    clock = SystemClock(machine=machine.clocks)
    before = clock.now()
    machine.set_wall_by(step_s)
    clock.now()
    machine.pass_time(60)
    gained_ms = clock.now() - before - 60_000
    machine.set_wall_by(-step_s)
    assert clock.now() - before == 60_000 + gained_ms
    machine.pass_time(61)
    assert clock.now() == machine.wall_ms


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.01, 0.5, 3.0, 100.0, 5000.0]),
            st.sampled_from([0.0, 0.0, 0.2, -0.2, *map(float, STEPS_S)]),
        ),
        max_size=30,
    )
)
def test_time_never_runs_faster_or_slower_than_by_a_tenth(moves: list[tuple[float, float]]) -> None:
    machine = FakeMachine()
    clock = SystemClock(machine=machine.clocks)
    last_ms, offset_s = clock.now(), 0.0
    for passed_s, step_s in moves:
        if abs(offset_s + step_s) * NS < ADJUSTED_NS / 2:
            offset_s += step_s
            machine.set_wall_by(step_s)
        # Somebody asks for the time after each event, as every process does several times a second.
        at_step_ms = clock.now()
        assert abs(at_step_ms - last_ms) <= 2 * STEP_MS
        machine.pass_time(passed_s)
        last_ms = clock.now()
        slack_ms = passed_s * 1000 / SLOWNESS + 2 * STEP_MS + 2
        assert abs(last_ms - at_step_ms - passed_s * 1000) <= slack_ms
    machine.pass_time(20 * 2 * DAY_S * SLOWNESS)
    assert clock.now() == machine.wall_ms


def test_a_wall_clock_that_stands_still_stops_nobody() -> None:
    machine = FakeMachine()
    clock = SystemClock(machine=machine.clocks)
    before = clock.now()
    machine.freeze_wall()
    for _ in range(600):
        machine.pass_time(1.0)
        clock.now()
    assert 535_000 <= clock.now() - before <= 600_000


def test_another_epoch_is_taken_over_after_an_hour() -> None:
    machine = FakeMachine()
    clock = SystemClock(machine=machine.clocks)
    before = clock.now()
    machine.set_wall_by(30 * DAY_S)
    clock.now()
    machine.pass_time(HELD_NS / NS - 1)
    assert clock.now() - before == pytest.approx(HELD_NS / 1e6 - 1000, abs=1)
    machine.pass_time(1)
    assert clock.now() == machine.wall_ms


def test_a_slip_into_another_epoch_can_be_taken_back() -> None:
    machine = FakeMachine()
    clock = SystemClock(machine=machine.clocks)
    before = clock.now()
    machine.set_wall_by(-400 * DAY_S)
    clock.now()
    machine.pass_time(1800)
    machine.set_wall_by(400 * DAY_S)
    assert clock.now() == before + 1_800_000 == machine.wall_ms


def test_while_a_machine_starts_its_clock_is_set() -> None:
    machine = FakeMachine(uptime_ns=30 * NS)
    clock = SystemClock(machine=machine.clocks)
    clock.now()
    machine.set_wall_by(-2 * HOUR_S)
    assert clock.now() == machine.wall_ms
    machine.pass_time(SETTLING_NS / NS)
    machine.set_wall_by(2 * HOUR_S)
    assert clock.now() == machine.wall_ms - 2 * HOUR_S * 1000


class TestAgreement:
    """The processes that share a store share its clock file."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "jobs.db-clock"

    @steps
    def test_everybody_has_the_same_time_however_late_they_look(self, path: Path, step_s: int) -> None:
        machine = FakeMachine()
        busy, idle = (SystemClock(ClockFile(path, "boot-1"), machine=machine.clocks) for _ in range(2))
        assert busy.now() == idle.now()
        machine.set_wall_by(step_s)
        busy.now()
        for _ in range(20):
            machine.pass_time(abs(step_s) / 3)
            late = SystemClock(ClockFile(path, "boot-1"), machine=machine.clocks)
            assert busy.now() == idle.now() == late.now()

    def test_a_process_that_starts_after_a_step_does_not_take_it_over_at_once(self, path: Path) -> None:
        machine = FakeMachine()
        before = SystemClock(ClockFile(path, "boot-1"), machine=machine.clocks).now()
        machine.pass_time(10 * DAY_S)
        machine.set_wall_by(HOUR_S)
        after = SystemClock(ClockFile(path, "boot-1"), machine=machine.clocks)
        assert after.now() == before + 10 * DAY_S * 1000

    def test_two_steps_are_seen_by_all_as_one_line_of_time(self, path: Path) -> None:
        machine = FakeMachine()
        first, second = (SystemClock(ClockFile(path, "boot-1"), machine=machine.clocks) for _ in range(2))
        assert first.now() == second.now()
        for step_s in (HOUR_S, -2 * HOUR_S, 600):
            machine.set_wall_by(step_s)
            first.now()
            machine.pass_time(100)
            assert first.now() == second.now()

    def test_only_the_first_to_notice_tells_of_a_step(self, path: Path) -> None:
        machine, told = FakeMachine(), list[float]()
        clocks = [SystemClock(ClockFile(path, "boot-1"), told.append, machine.clocks) for _ in range(3)]
        for clock in clocks:
            clock.now()
        machine.set_wall_by(HOUR_S)
        for clock in clocks:
            clock.now()
        assert told == [HOUR_S]

    def test_a_mark_of_another_boot_says_nothing(self, path: Path) -> None:
        machine = FakeMachine()
        ClockFile(path, "boot-1").write(ClockMark(5, 7 * NS, 7 * NS))
        clock = SystemClock(ClockFile(path, "boot-2"), machine=machine.clocks)
        assert clock.now() == machine.wall_ms

    @pytest.mark.parametrize("text", ["", "boot-1", "boot-1 1 2", "boot-1 one 2 3", "boot-1 1 2 3 4", "\xff\xfe"])
    def test_a_damaged_file_says_nothing(self, path: Path, text: str) -> None:
        path.write_text(text, "latin-1")
        assert ClockFile(path, "boot-1").read() is None

    def test_a_file_that_cannot_be_written_stops_nobody(self, tmp_path: Path) -> None:
        machine = FakeMachine()
        clock = SystemClock(ClockFile(tmp_path / "missing" / "jobs.db-clock"), machine=machine.clocks)
        before = clock.now()
        machine.set_wall_by(HOUR_S)
        machine.pass_time(10)
        assert clock.now() - before == pytest.approx(10_000, abs=1)

    def test_this_boot_has_a_name_and_the_file_keeps_a_mark(self, path: Path) -> None:
        mark = ClockMark(1, -2, 3)
        ClockFile(path).write(mark)
        assert ClockFile(path).read() == mark
        assert list(path.parent.iterdir()) == [path]
