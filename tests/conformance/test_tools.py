"""The tools that tests of Coatcheck stand on."""

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from coatcheck.store.clock import Clock
from coatcheck.testing.clock import START_MS, ManualClock
from coatcheck.testing.faults import FaultPoints, crash_at
from coatcheck.testing.history import Entry, HistoryWriter, Mark, read_history
from coatcheck.testing.waiting import wait_until, wait_until_async

_PASSES = """
import sys
from coatcheck.testing.faults import crash_at
fault_point = crash_at(sys.argv[1])
for n in range(3):
    fault_point("before-commit")
    print(n, flush=True)
"""


def _crash(place: str) -> tuple[int, list[str]]:
    run = subprocess.run([sys.executable, "-c", _PASSES, place], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout.split()


class TestManualClock:
    def test_it_stands_still(self) -> None:
        clock: Clock = ManualClock()
        assert (clock.now(), clock.now_us(), clock.monotonic_s()) == (START_MS, START_MS * 1000, 0)
        assert clock.now() == START_MS

    def test_time_passes_on_both_clocks(self) -> None:
        clock = ManualClock()
        clock.advance(1.5)
        clock.advance(0.000001)
        assert (clock.now(), clock.now_us()) == (START_MS + 1500, START_MS * 1000 + 1_500_001)
        assert clock.monotonic_s() == pytest.approx(1.500001)

    def test_the_wall_clock_jumps_alone(self) -> None:
        clock = ManualClock()
        clock.advance(1)
        clock.set_wall(START_MS - 3_600_000)
        assert (clock.now(), clock.monotonic_s()) == (START_MS - 3_600_000, 1)

    def test_time_does_not_pass_backwards(self) -> None:
        with pytest.raises(ValueError, match="backwards"):
            ManualClock().advance(-1)


class TestFaultPoints:
    def test_hits_are_counted_by_name(self) -> None:
        faults = FaultPoints()
        for name in ("a", "b", "a"):
            faults(name)
        assert (faults.count("a"), faults.count("b"), faults.count("c")) == (2, 1, 0)
        assert faults.names == {"a", "b"}

    def test_an_error_is_raised_at_the_nth_pass_only(self) -> None:
        faults = FaultPoints()
        faults.raise_at("a", OSError("No space left"), nth=2)
        faults("a")
        with pytest.raises(OSError, match="No space"):
            faults("a")
        faults("a")
        faults("b")

    def test_a_hook_is_called_on_the_thread_that_passes(self) -> None:
        faults = FaultPoints()
        names: list[str] = []
        faults.call_at("a", lambda: names.append(threading.current_thread().name))
        thread = threading.Thread(target=faults, args=("a",), name="passer")
        thread.start()
        thread.join()
        assert names == ["passer"]

    def test_a_crash_is_the_kernel_s_at_the_nth_pass(self) -> None:
        assert _crash("before-commit:2") == (-signal.SIGKILL, ["0"])
        assert _crash("after-commit:1") == (0, ["0", "1", "2"])

    @pytest.mark.parametrize("place", ["", "a", ":1", "a:0", "a:-1", "a:x", "A:1", "a:1 ", "a:1:2", "a b:1"])
    def test_a_place_is_a_name_and_a_number(self, place: str) -> None:
        with pytest.raises(ValueError, match="is not a fault point"):
            crash_at(place)


class TestHistory:
    def test_what_is_written_is_read_in_the_order_of_time(self, tmp_path: Path) -> None:
        clock = ManualClock()
        one = HistoryWriter(tmp_path / "one.jsonl", "client-1", clock)
        other = HistoryWriter(tmp_path / "other.jsonl", "worker-1", clock)
        with one, other:
            one.write(Mark.INVOKE, "accept", key="k", tenant="acme")
            clock.advance(0.5)
            other.write(Mark.OK, "claim", job_id="job_1", attempt=1, token=str(7), more={"note": "☂"})
            clock.advance(0.5)
            one.write(Mark.UNKNOWN, "accept", key="k", http_status=503)
        assert read_history([tmp_path / "other.jsonl", tmp_path / "one.jsonl"]) == [
            Entry(0, "client-1", Mark.INVOKE, "accept", key="k", tenant="acme"),
            Entry(500_000, "worker-1", Mark.OK, "claim", job_id="job_1", attempt=1, token=str(7), more={"note": "☂"}),
            Entry(1_000_000, "client-1", Mark.UNKNOWN, "accept", key="k", http_status=503),
        ]

    def test_a_line_cut_off_by_a_kill_is_left_out(self, tmp_path: Path) -> None:
        path = tmp_path / "history.jsonl"
        with HistoryWriter(path, "client-1") as writer:
            writer.write(Mark.INVOKE, "accept")
        with path.open("ab") as file:
            file.write(b'{"at_us": 1, "who": "cli')
        assert [entry.what for entry in read_history([path])] == ["accept"]

    def test_writers_may_share_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "history.jsonl"
        writers = [HistoryWriter(path, f"client-{n}") for n in range(4)]
        threads = [
            threading.Thread(target=lambda one=writer: [one.write(Mark.OK, "accept", version=n) for n in range(50)])
            for writer in writers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for writer in writers:
            writer.close()
        entries = read_history([path])
        assert len(entries) == 200
        assert len({(entry.who, entry.version) for entry in entries}) == 200


class TestWaiting:
    def test_it_returns_when_the_predicate_holds(self) -> None:
        event = threading.Event()
        timer = threading.Timer(0.02, event.set)
        timer.start()
        wait_until(event.is_set, "the timer")
        timer.join()

    def test_it_gives_up_with_its_message(self) -> None:
        with pytest.raises(TimeoutError, match="pigs to fly"):
            wait_until(lambda: False, "pigs to fly", timeout_s=0.02)

    async def test_the_loop_goes_on_meanwhile(self) -> None:
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(0.02, event.set)
        await wait_until_async(event.is_set, "the timer")

        async def is_set() -> bool:
            return event.is_set()

        await wait_until_async(is_set, "the timer")
        with pytest.raises(TimeoutError, match="pigs to fly"):
            await wait_until_async(lambda: False, "pigs to fly", timeout_s=0.02)
