"""huey on SQLite, synced at every commit. (It takes a job off its table before it runs it: a kill loses that one.)"""

from typing import Any

from fastapi import FastAPI
from huey import SqliteHuey

from benchmarks.peers.request import STORE, Report

queue = SqliteHuey("peer", filename=STORE, fsync=True)


@queue.task(name="reports")
def reports(request: dict[str, Any]) -> bool:
    return True


app = FastAPI()


@app.post("/v1/reports", status_code=202)
def accept(report: Report) -> dict[str, str]:
    return {"id": str(reports(report.model_dump()).id)}
