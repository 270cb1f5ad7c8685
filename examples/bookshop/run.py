"""What `make run` starts: the bookshop, until it is told to stop. `python -m bookshop.run PORT`."""

import os
import sys
from pathlib import Path

from rich.console import Console

from bookshop.local_server import serve_command, server_environment

GREETING = """
[bold]The bookshop opens at {url}[/]

Hand in a stock report, and follow it to its end with the id that comes back:

  curl -i {url}/reports -H 'Content-Type: application/json' -d '{{"branch": "hamburg-altona"}}'
  curl -N {url}/reports/JOB_ID -H 'Accept: text/event-stream'

Or hand one in and wait for it:

  curl -s {url}/reports -H 'Content-Type: application/json' -H 'Prefer: wait=20' -d '{{"branch": "koeln-ehrenfeld"}}'
"""


def main(port: str) -> None:
    """Become the server, so that Ctrl-C and signals reach it and nothing else."""
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    Console(highlight=False).print(GREETING.format(url=f"http://127.0.0.1:{port}"), soft_wrap=True)
    command = serve_command(folder, port)
    os.execve(command[0], command, server_environment(folder))  # noqa: S606 - every word of the command is ours


if __name__ == "__main__":
    main(sys.argv[1])
