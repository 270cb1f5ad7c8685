"""A program with a worker, to be killed: it prints its runner's process id and waits."""

import asyncio
import sys
from pathlib import Path

from execution_world import ExecutionWorld, make_worker, open_store

from coatcheck.observe.metrics import Metrics


async def main(folder: Path) -> None:
    store = await open_store(folder)
    metrics = Metrics()
    worker = make_worker(store, metrics)
    await worker.start()
    world = ExecutionWorld(store, worker, metrics, folder)
    facts = await world.result(await world.submit("look-around"))
    print(facts["pid"], flush=True)  # noqa: T201 - read by the test
    await asyncio.Event().wait()


asyncio.run(main(Path(sys.argv[1])))
