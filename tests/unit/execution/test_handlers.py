"""What handlers return, raise and are told, through real runners and a real store."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from execution_world import TENANT, ExecutionWorld, running_world

from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import JobRecord
from coatcheck.core.states import Status
from coatcheck.store.records import Redriving
from coatcheck.testing.waiting import wait_until_async

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ExecutionWorld]:
    async with running_world(tmp_path_factory.mktemp("handlers")) as running:
        yield running


@pytest.fixture
def world(shared_world: ExecutionWorld, tmp_path: Path) -> ExecutionWorld:
    """The module's one world, with a folder of this test's own."""
    shared_world.folder = tmp_path
    return shared_world


def error_of(job: JobRecord) -> ErrorInfo:
    assert job.error is not None
    return job.error


@pytest.mark.parametrize("operation", ["double", "double-in-thread"])
async def test_a_result_is_json_of_the_declared_type(world: ExecutionWorld, operation: str) -> None:
    assert await world.result(await world.submit(operation, 21)) == {"total": 42}


async def test_many_jobs_run_side_by_side(world: ExecutionWorld) -> None:
    jobs = [await world.submit("double", number) for number in range(200)]
    assert [await world.result(job) for job in jobs] == [{"total": 2 * number} for number in range(200)]
    await wait_until_async(
        lambda: world.metrics.read("finished", operation="double", status="succeeded") >= 200, "all are counted"
    )


async def test_a_process_of_its_own_is_used_again(world: ExecutionWorld) -> None:
    first = await world.result(await world.submit("pid-in-process"))
    assert await world.result(await world.submit("pid-in-process")) == first
    assert (await world.result(await world.submit("look-around")))["pid"] != first


async def test_an_exception_is_retried_and_stays_with_the_operator(world: ExecutionWorld) -> None:
    job = await world.final(await world.submit("raise"))
    error = error_of(job)
    assert (job.status, job.attempt, error.category) == (Status.FAILED, 2, ErrorCategory.HANDLER_ERROR)
    assert "secret" not in error.detail
    detail = error.operator_detail or ""
    assert "RuntimeError: secret \ufffd of the \ufffd trade" in detail
    assert "execution_handlers.py" in detail
    assert "attempt.py" not in detail


async def test_a_job_error_is_final_and_told_to_the_client(world: ExecutionWorld) -> None:
    job = await world.final(await world.submit("refuse"))
    error = error_of(job)
    assert (job.attempt, error.category, error.code) == (1, ErrorCategory.LIMIT_EXCEEDED, "branches")
    assert error.detail == "Too many branches."


async def test_a_handler_may_ask_to_be_tried_again_later(world: ExecutionWorld) -> None:
    job_id = await world.submit("later")
    assert await world.result(job_id) == "now"
    assert await world.outcomes(job_id) == ["retry_later", "succeeded"]


@pytest.mark.parametrize("operation", ["exit", "exit-in-thread"])
async def test_leaving_a_handler_does_not_leave_the_runner(world: ExecutionWorld, operation: str) -> None:
    before = await world.result(await world.submit("look-around"))
    job = await world.final(await world.submit(operation))
    assert error_of(job).category is ErrorCategory.HANDLER_ERROR
    assert (await world.result(await world.submit("look-around")))["pid"] == before["pid"]


async def test_a_result_of_another_type_is_not_stored(world: ExecutionWorld) -> None:
    job = await world.final(await world.submit("wrong-type"))
    assert (job.attempt, error_of(job).category) == (1, ErrorCategory.RESULT_NOT_STORABLE)


async def test_a_result_that_is_too_large_is_not_stored(world: ExecutionWorld) -> None:
    job = await world.final(await world.submit("large"))
    assert (job.attempt, error_of(job).category) == (1, ErrorCategory.RESULT_TOO_LARGE)


async def test_a_large_file_crosses_the_channel(world: ExecutionWorld) -> None:
    job = await world.final(await world.submit("huge"))
    assert job.result is not None
    assert job.result.size_bytes == 40 * 1024 * 1024


async def test_a_file_is_read_from_its_path(world: ExecutionWorld) -> None:
    job_id = await world.submit("file")
    await world.final(job_id)
    stored = await world.store.read_result(TENANT, job_id, world.clock.now())
    assert stored is not None
    assert (stored.body, stored.content_type, stored.file_name) == (b"a report", "text/plain", "report.txt")


async def test_an_input_that_does_not_fit_fails(world: ExecutionWorld) -> None:
    job = await world.final(await world.submit("double", payload=b'{"number": "many"}'))
    assert (job.attempt, error_of(job).category) == (1, ErrorCategory.INVALID_INPUT)
    assert "many" not in (error_of(job).operator_detail or "")


async def test_an_input_of_another_version_is_given_back_uncounted(world: ExecutionWorld) -> None:
    job_id = await world.submit("double", payload=b"{}", operation_version="0")
    while (await world.outcomes(job_id))[:1] != ["released"]:
        await world.result(await world.submit("double"))
    job = await world.find(job_id)
    assert (job.status, job.counted_attempts) == (Status.QUEUED, 0)
    assert job.available_at > world.clock.now()


async def test_the_job_knows_its_facts(world: ExecutionWorld) -> None:
    deadline_at = world.clock.now() + 60_000
    job_id = await world.submit("facts", deadline_at=deadline_at)
    facts = await world.result(job_id)
    assert 50 < facts.pop("seconds_left") <= 60
    assert facts.pop("deadline").endswith("+00:00")
    assert facts == {
        "id": job_id,
        "attempt": 1,
        "correlation_id": "corr",
        "tenant": TENANT,
        "operation": "facts",
        "cancelled": False,
    }


async def test_progress_is_stored_and_gathered(world: ExecutionWorld) -> None:
    job_id = await world.submit("progress")

    async def progress() -> tuple[float | None, str | None]:
        stored = (await world.find(job_id)).progress
        return (None, None) if stored is None else (stored.fraction, stored.message)

    while await progress() != (0.25, "one of four"):
        await world.result(await world.submit("double"))
    job = await world.find(job_id)
    world.let("go")
    ended = await world.final(job_id)
    took_s = ((ended.finished_at or 0) - job.updated_at) / 1000
    # The end is a version of its own.
    assert ended.version <= job.version + 4 * took_s + 2


@pytest.mark.parametrize(
    ("operation", "attempts", "value"), [("effect", 3, {"total": 7}), ("effect-in-thread", 2, [1])]
)
async def test_an_effect_is_done_once_over_all_attempts(
    world: ExecutionWorld, operation: str, attempts: int, value: object
) -> None:
    job_id = await world.submit(operation)
    assert await world.result(job_id) == value
    assert (await world.find(job_id)).attempt == attempts
    key = hashlib.sha256(f"{job_id}\npay".encode()).hexdigest()
    assert world.marks("paid") == [key]


async def test_a_redrive_finds_the_effects_of_its_chain(world: ExecutionWorld) -> None:
    job_id = await world.submit("effect-in-thread", max_attempts=1)
    assert (await world.final(job_id)).status is Status.FAILED
    redriving = Redriving(TENANT, job_id, "job_" + "1" * 28, world.clock.now())
    redriven = await world.store.redrive_job(redriving)
    assert isinstance(redriven, JobRecord)
    assert (await world.final(redriven.id)).error is not None
    assert len(world.marks("paid")) == 1


async def test_a_runner_inherits_nothing_of_the_store(
    world: ExecutionWorld,
) -> None:
    facts = await world.result(await world.submit("look-around"))
    # Its channel, its notices, and the pair its own loop is woken with.
    assert len(facts["sockets"]) <= 4
    assert (facts["files"], facts["store"]) == ([], None)
