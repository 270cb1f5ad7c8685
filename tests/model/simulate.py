"""Plays stories: `python -m model.simulate --seeds 1-500`, in the folder `tests` with the package importable.

A story is told again, the same in every step, by its seed at the same commit. The exit code is 1 if a promise broke.
"""

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Sequence

from .sim_story import Ending, play

HASH_SEED = "PYTHONHASHSEED"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m model.simulate")
    parser.add_argument("--seeds", default="1-20", help="one seed, or the first and the last as in 1-500")
    parser.add_argument("--tell", action="store_true", help="tell each story line by line")
    parser.add_argument("--digests", action="store_true", help="print one digest for each story")
    options = parser.parse_args(arguments)
    # Nothing may depend on when garbage is found.
    gc.disable()
    first, _, last = options.seeds.partition("-")
    endings = [_play(seed, options.tell, options.digests) for seed in range(int(first), int(last or first) + 1)]
    _sum_up(endings)
    return 1 if any(ending.faults for ending in endings) else 0


def _play(seed: int, is_told: bool, has_digest: bool) -> Ending:
    ending = play(seed)
    gc.collect()
    if is_told:
        _say(*ending.lines)
    if has_digest:
        _say(f"{seed} {ending.digest}")
    if ending.faults:
        _say(f"seed {seed}:", *(f"  {fault}" for fault in ending.faults))
        _say(f"  again: cd tests && PYTHONPATH=../src {sys.executable} -m model.simulate --tell --seeds {seed}")
    return ending


def _sum_up(endings: Sequence[Ending]) -> None:
    deeds: Counter[str] = sum((ending.deeds for ending in endings), Counter())
    passed: Counter[str] = sum((ending.passed for ending in endings), Counter())
    broken = sum(bool(ending.faults) for ending in endings)
    jobs, hours = sum(ending.jobs for ending in endings), sum(ending.virtual_s for ending in endings) / 3600
    _say(f"{len(endings)} stories, {broken} broken; {jobs} jobs in {hours:.1f} h of service")
    _say("chaos: " + ", ".join(f"{name.strip('_')} {count}" for name, count in sorted(deeds.items())))
    _say(f"fault points passed: {len(passed)}, {sum(passed.values())} times")


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    if os.environ.get(HASH_SEED) != "0":
        # The order of sets of texts is part of a story.
        command = [sys.executable, "-m", "model.simulate", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {HASH_SEED: "0"})  # noqa: S606 - the same program again
    sys.exit(main(sys.argv[1:]))
