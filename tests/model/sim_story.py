"""One story from a seed: a service, its clients and everything that goes wrong, until all is at rest again."""

import asyncio
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import apsw

from coatcheck.store.records import Redriving
from coatcheck.testing.checker_evidence import DUMP
from coatcheck.testing.clock import START_MS
from coatcheck.testing.simulation_loop import NothingHappens, SimulatedLoop, pass_time
from coatcheck.testing.simulation_randomness import seeded_randomness

from .engines import memory_folder
from .sim_app import make_app
from .sim_caller import Caller
from .sim_checks import OPEN_TABLES, EndChecks, Timeline
from .sim_client import Client
from .sim_faults import POINTS
from .sim_node import Node, Site
from .sim_record import Record

CHAOS_S = 60.0
REST_S_MAX = 1800.0
ALL = ("api", "worker", "relay", "upkeep")
TOPOLOGIES = (
    {"all": ALL},
    {"all": ALL},
    {"one": ALL, "two": ALL},
    {"api": ("api",), "worker": ("worker",), "upkeep": ("upkeep", "relay")},
    {"api": ("api", "upkeep"), "worker-a": ("worker",), "worker-b": ("worker", "relay")},
)
JUMPS_S = (1, -1, 3600, -3600, 86_400, -86_400)


@dataclass(frozen=True, slots=True)
class Ending:
    """What came of a story."""

    seed: int
    faults: list[str]
    lines: list[str]
    digest: str
    passed: Counter[str]
    deeds: Counter[str]
    jobs: int
    virtual_s: float


def play(seed: int) -> Ending:
    """Play the story of a seed."""
    folder = Path(tempfile.mkdtemp(prefix="coatcheck-story-", dir=memory_folder()))
    loop = SimulatedLoop(Random(f"{seed}/schedule"))  # noqa: S311 - repeatable on purpose
    try:
        with seeded_randomness(str(seed)), _errors_blamed(story := Story(loop, folder, seed)):
            loop.run_until_complete(story.tell())
            ending = story.ending()
            loop.run_until_complete(loop.clear_away())
        return ending
    finally:
        loop.close()
        shutil.rmtree(folder)


class Story:
    """The service, three clients, and chaos for a minute."""

    def __init__(self, loop: SimulatedLoop, folder: Path, seed: int) -> None:
        self._seed = seed
        self._site = Site(loop, folder, str(seed), START_MS)
        self.record: Record = self._site.record
        self._random = self._site.random("chaos")
        self._lost_share = self._random.choice([0.0, 0.2, 1.0])
        topology = self._random.choice(TOPOLOGIES)
        self._nodes = [Node(self._site, name, roles, make_app) for name, roles in topology.items()]
        doors = [node for node in self._nodes if "api" in node.roles]
        self._clients = [Client(f"client-{n}", doors, self.record, self._site.random(f"client {n}")) for n in range(3)]
        self._timeline = Timeline()
        self._deeds: Counter[str] = Counter()

    def ending(self) -> Ending:
        record = self.record
        faults = [*record.faults, *self._site.loop.failures]
        jobs, virtual_s = len(record.accepted_s), self._site.loop.time()
        return Ending(
            self._seed, faults, record.lines, record.digest(), self._site.passed, self._deeds, jobs, virtual_s
        )

    async def tell(self) -> None:
        noting = asyncio.create_task(self._note_time())
        for node in self._nodes:
            node.start(self._lost_share)
            await pass_time(1.0)
        clients = [client.start(6) for client in self._clients]
        await self._rage()
        self._heal()
        await self._rest(clients)
        doors = [node for node in self._nodes if "api" in node.roles]
        await Caller(DUMP, doors, self.record, self._random).dump()
        for node in self._nodes:
            node.stop()
        await pass_time(30.0)
        self._check()
        noting.cancel()

    async def _rage(self) -> None:
        loop, random = self._site.loop, self._random
        ends_s = loop.time() + CHAOS_S
        while loop.time() < ends_s:
            await pass_time(random.random() * 6)
            deed = random.choice(_DEEDS)
            node = random.choice(self._nodes)
            self.record.tell(f"chaos: {deed.__name__} {node.name}")
            self._deeds[deed.__name__] += 1
            if node.is_alive or deed is _start_again:
                deed(self, node, random)
            elif random.random() < 0.5:
                _start_again(self, node, random)

    def _heal(self) -> None:
        self.record.tell("chaos ends")
        for node in self._nodes:
            if node.is_alive:
                node.process.resume()
                node.faults.heal()

    async def _rest(self, clients: "list[asyncio.Task[None]]") -> None:
        """Until every node serves, every client is content and nothing is open any more."""
        ends_s = self._site.loop.time() + REST_S_MAX
        while True:
            for node in self._nodes:
                if not node.is_alive:
                    node.start(self._lost_share)
            # Whoever was started this very moment does not answer yet.
            await pass_time(2.0)
            if all(client.done() for client in clients) and not self._open_rows():
                return
            if self._site.loop.time() > ends_s:
                self.record.blame(f"no rest after {REST_S_MAX} s: {self._open_rows()}")
                return

    def _open_rows(self) -> dict[str, int]:
        with _read_only(self._site.path) as connection:
            counts = {name: connection.execute(f"SELECT count(*) FROM {name}").get for name in OPEN_TABLES}  # noqa: S608 - fixed
        return {name: count for name, count in counts.items() if count}

    def _check(self) -> None:
        wishes = [wish for client in self._clients for wish in client.wishes]
        checks = EndChecks(self._site.path, self._site.events_path, self.record, self._timeline)
        checks.run(wishes)

    async def _note_time(self) -> None:
        clock = self._site.clock()
        while True:
            self._timeline.note(clock.now(), self._site.loop.time())
            await pass_time(0.25)

    # --- what chaos does

    def failed_job(self) -> tuple[str, str] | None:
        """Tenant and id of a failed job."""
        with _read_only(self._site.path) as connection:
            row = connection.execute("SELECT tenant, id FROM job WHERE status = 'failed' ORDER BY id").fetchone()
        return None if row is None else (row[0], row[1])

    def set_wall(self, seconds: int) -> None:
        self._site.wall_step_ns += seconds * 1_000_000_000
        self.record.tell(f"the wall clock is set by {seconds} s")

    @property
    def lost_share(self) -> float:
        return self._lost_share


def _kill(story: Story, node: Node, random: Random) -> None:
    node.process.kill()
    story.record.loop.call_later(random.random() * 12, _start_again, story, node, random)


def _start_again(story: Story, node: Node, random: Random) -> None:
    if not node.is_alive:
        node.start(story.lost_share)


def _kill_at_a_point(story: Story, node: Node, random: Random) -> None:
    name = random.choice(POINTS)
    story.record.tell(f"armed: {name}")
    node.faults.arm(name, random.randrange(1, 4))


def _kill_a_runner(story: Story, node: Node, random: Random) -> None:
    if node.home is not None and node.home.living:
        random.choice(node.home.living).kill()


def _pause(story: Story, node: Node, random: Random) -> None:
    """Often longer than the lease: it wakes up a zombie, whose runners may have gone on."""
    process = node.process
    process.pause(with_children=random.random() < 0.4)
    story.record.loop.call_later(random.choice([0.5, 5.0, 20 + random.random() * 30]), process.resume)


def _stop(story: Story, node: Node, random: Random) -> None:
    node.stop()
    story.record.loop.call_later(10 + random.random() * 12, _start_again, story, node, random)


def _fill_the_disk(story: Story, node: Node, random: Random) -> None:
    faults = node.faults
    faults.is_disk_full = True
    story.record.loop.call_later(random.choice([0.1, 3.0, 25.0]), _set(faults, "is_disk_full"))


def _take_the_file(story: Story, node: Node, random: Random) -> None:
    faults = node.faults
    faults.is_file_gone = True
    story.record.loop.call_later(random.choice([0.1, 3.0]), _set(faults, "is_file_gone"))


def _set_the_clock(story: Story, node: Node, random: Random) -> None:
    story.set_wall(random.choice(JUMPS_S))


def _redrive(story: Story, node: Node, random: Random) -> None:
    failed = story.failed_job()
    if failed is None or node.runtime is None or node.asgi is None:
        return
    clock = node.runtime.clock
    new_id = f"job_{random.getrandbits(60):028d}"
    node.process.run(_drive(node, Redriving(*failed, new_id, clock.now())))


async def _drive(node: Node, redriving: Redriving) -> None:
    if node.runtime is not None:
        await node.runtime.store.redrive_job(redriving)


def _set(faults: object, name: str) -> Callable[[], None]:
    return lambda: setattr(faults, name, False)


_DEEDS = (
    _kill,
    _kill,
    _start_again,
    _kill_at_a_point,
    _kill_at_a_point,
    _kill_at_a_point,
    _kill_a_runner,
    _kill_a_runner,
    _pause,
    _pause,
    _stop,
    _fill_the_disk,
    _take_the_file,
    _set_the_clock,
    _set_the_clock,
    _redrive,
)


@contextmanager
def _read_only(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        yield connection
    finally:
        connection.close()


# A runner that chaos kills while it starts.
_FORESEEN = "runner_failed "


class _Blaming(logging.Handler):
    """Whatever the product logs as an error was not foreseen by it."""

    def __init__(self, record: Record) -> None:
        super().__init__(logging.ERROR)
        self._record = record
        self._format = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        text = self._format.format(record)
        if not text.startswith(_FORESEEN):
            self._record.blame(f"logged: {text}")


@contextmanager
def _errors_blamed(story: Story) -> Iterator[None]:
    logger, handler = logging.getLogger("coatcheck"), _Blaming(story.record)
    level, logger.propagate = logger.level, False
    logger.setLevel(logging.ERROR)
    logger.addHandler(handler)
    try:
        yield
    except NothingHappens:
        story.record.blame("everybody waits for ever")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = True
