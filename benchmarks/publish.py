"""`python -m benchmarks.publish`: write the newest kept result into docs/test/speed.md, between its two marks."""

import json
import sys
from typing import Any

from benchmarks.places import RESULTS, ROOT
from benchmarks.wording import measured, number, ratio, spread

PAGE = ROOT / "docs" / "test" / "speed.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def main() -> int:
    """Returns the exit code."""
    newest = max(RESULTS.glob("*.json"), default=None)
    if newest is None:
        sys.stderr.write("No result is kept yet; run: make bench\n")
        return 1
    result = json.loads(newest.read_text("utf-8"))
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{as_markdown(result)}\n{END}{after}", "utf-8")
    return 0


def as_markdown(result: dict[str, Any]) -> str:
    """The result as tables, one for each section."""
    machine = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in result["machine"].items())
    versions = ", ".join(f"{key} {value}" for key, value in result["versions"].items())
    parts = [f"Taken {result['taken_at'][:16].replace('T', ' ')} UTC at commit {result['commit']}."]
    section = ""
    for row in result["rows"]:
        if row["section"] != section:
            section = row["section"]
            head = f"| {section} | measured | range | p99 | CPU each | beside | ratio | promised |"
            parts.append(f"\n{head}\n|---|---:|---:|---:|---:|---:|---:|---|")
        parts.append(_line(row))
    return "\n".join([*parts, "", f"Machine: {machine}.", "", f"Versions: {versions}.", ""])


def _line(row: dict[str, Any]) -> str:
    if "fault" in row["extra"]:
        return f"| {row['what']} | not measured | | | | | | |"
    mark = " \\*" if row["is_disturbed"] else ""
    p99 = f"{row['extra']['p99_ms']:.1f} ms" if "p99_ms" in row["extra"] else ""
    cpu = f"{row['extra']['cpu_us']:.0f} µs" if "cpu_us" in row["extra"] else ""
    beside = "" if row["beside"] is None else f"{number(row['beside'])} ({row['beside_name']})"
    verdict = row["verdict"]
    promised = "" if verdict is None else f"{verdict['target']}: {'kept' if verdict['is_met'] else '**missed**'}"
    value = measured(row["value"], row["unit"]) + mark
    cells = (row["what"], value, spread(row["values"]), p99, cpu, beside, ratio(row["ratio"]), promised)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
