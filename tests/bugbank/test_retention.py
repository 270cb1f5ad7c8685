"""Retention: everything that ended is gone in its time, whichever way it ended."""

from coatcheck.testing.waiting import wait_until, wait_until_async
from contract.conftest import Connect, Serve
from harness.sqlite_factory import SqliteFactory

ENDS: dict[str, tuple[str, dict[str, str]]] = {
    "succeeded": ("return", {}),
    "failed": ("fail:invalid_input", {}),
    "cancelled": ("return", {"Job_Start_After": "3600"}),
    "overdue": ("return", {"Job_Start_After": "0.2", "Job_Deadline": "0.201"}),
}


async def test_bb_060_every_row_of_every_ending_is_gone_at_last(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    rows = SqliteFactory(server.store).count_rows
    baseline = await rows()
    jobs = []
    for ending, (plan, headers) in ENDS.items():
        for key in ({"Idempotency_Key": f"key-{ending}"}, {}):
            jobs.append(client.submit("brief-tombstone", {"plan": [plan]}, **headers, **key))
            if ending == "cancelled":
                client.cancel(jobs[-1])

    def are_unknown() -> bool:
        return {client.get(job["status_url"]).status_code for job in jobs} == {404}

    wait_until(are_unknown, "jobs and their tombstones to end", 30)

    async def is_back() -> bool:
        return await rows() == baseline

    await wait_until_async(is_back, "every row to be gone", 15)
