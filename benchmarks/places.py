"""Where the benchmarks find and keep things. All that they make, results excepted, lies below .bench."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / ".bench"
RUN = BENCH / "run"
SCRIPTS = ROOT / "benchmarks" / "wrk"
PEERS = ROOT / "benchmarks" / "peers"
RESULTS = ROOT / "benchmarks" / "results"
