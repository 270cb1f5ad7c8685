"""Claims that pages make in passing, tried out."""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from .pages import DOCS, ROOT, page
from .serving import serving, write_modules

README = page(ROOT / "README.md")
REQUEST = {"branch": "harbour"}
KEY = {"Idempotency-Key": "march-harbour"}


def test_readme_kill_the_server_between_the_two(tmp_path: Path) -> None:
    write_modules(README, tmp_path)
    with serving("shop:app", tmp_path) as server:
        job = server.client.post("/reports", json=REQUEST, headers=KEY)
        server.kill()
        server.start()
        done = server.client.get(job.headers["Location"], headers={"Prefer": "wait=20"}).json()
        again = server.client.post("/reports", json=REQUEST, headers=KEY)
        assert (done["id"], done["status"], done["result"]) == (job.json()["id"], "succeeded", {"titles": 40})
        assert (again.json()["id"], again.headers["Idempotent-Replayed"]) == (done["id"], "true")
        assert len(server.client.get("/reports").json()["jobs"]) == 1


def test_readme_example_is_short() -> None:
    (code,) = (fence.code for fence in README.fences if "file=shop.py" in fence.words)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_backups_a_copy_of_a_running_store_is_whole(tmp_path: Path) -> None:
    write_modules(README, tmp_path)
    (code,) = (fence.code for fence in page(DOCS / "operate" / "backups.md").fences if "run" in fence.words)
    shown: dict[str, Any] = {}
    exec(compile(code, "backups.md", "exec"), shown)  # noqa: S102 - the page's own code
    with serving("shop:app", tmp_path) as server:
        job_id = server.client.post("/reports", json=REQUEST).json()["id"]
        shown["back_up"](tmp_path / "coatcheck.db", tmp_path / "copy.db")
    with closing(apsw.Connection(str(tmp_path / "copy.db"))) as copy:
        assert copy.pragma("integrity_check") == "ok"
        assert copy.execute("SELECT id FROM job").fetchall() == [(job_id,)]
