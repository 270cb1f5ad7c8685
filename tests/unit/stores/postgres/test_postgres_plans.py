"""Plans are pinned on tables that hold something: a hot statement seeks by the index that was made for it."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from coatcheck.stores.postgres.connection import connect
from coatcheck.stores.postgres.statements import sql
from harness.postgres_server import shared_server
from harness.postgres_work import opened

SEED = """
INSERT INTO coatcheck.job (
    id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, correlation_id,
    chain_id, updated_at, status, finished_at, expires_at, tombstone_until, result_type, result_bytes
)
SELECT
    'job_' || n, 'tenant-' || n % 50, 'operation-' || n % 3, '1', 5, 5, n, n, 'c', 'job_' || n, n,
    CASE WHEN n % 2 = 0 THEN 'succeeded' END, CASE WHEN n % 2 = 0 THEN n END, CASE WHEN n % 2 = 0 THEN n END,
    CASE WHEN n % 2 = 0 THEN n END, CASE WHEN n % 2 = 0 THEN 'application/json' END, CASE WHEN n % 2 = 0 THEN 2 END
FROM generate_series(1, 5000) AS n;
INSERT INTO coatcheck.ready
SELECT operation, tenant, 5, id, 1, 1, 0, 0, 0, false, NULL, 1 FROM coatcheck.job WHERE status IS NULL;
INSERT INTO coatcheck.turn SELECT DISTINCT operation, tenant, true, 0.0 FROM coatcheck.ready;
INSERT INTO coatcheck.turn SELECT 'o', 'held-' || n, true, n, true FROM generate_series(1, 2000) AS n;
INSERT INTO coatcheck.scheduled
SELECT 's' || n, n, 'o', 't', 5, 1, 0, 0, 0, false, NULL, 1 FROM generate_series(1, 2000) n;
INSERT INTO coatcheck.lease
SELECT 'l' || n, 'o', 't', 5, 'x', 'w', n, 1, 1, 1, 1, 0, false, 1, 1, 1 FROM generate_series(1, 2000) AS n;
INSERT INTO coatcheck.payload SELECT id, '' FROM coatcheck.job;
INSERT INTO coatcheck.deadline SELECT n, 's' || n FROM generate_series(1, 2000) AS n;
INSERT INTO coatcheck.idempotency_key SELECT 't', 'o', 'k' || n, 'a', 'f', 'j', n FROM generate_series(1, 2000) AS n;
INSERT INTO coatcheck.tombstone SELECT 't' || n, 't', 'o', 1, n FROM generate_series(1, 2000) AS n;
INSERT INTO coatcheck.result SELECT id, 'application/json', NULL, 1, '' FROM coatcheck.job WHERE status IS NOT NULL;
INSERT INTO coatcheck.outbox (type, job_id, tenant, operation, version, occurred_at, correlation_id, data)
SELECT 't', 'j', 't', 'o', 1, 1, 'c', '' FROM generate_series(1, 2000);
INSERT INTO coatcheck.inbox
SELECT 'i' || n, 't' || n % 50, 'o', '1', 5, 5, n, n, NULL, 'c', NULL, '', 'k' || n, 'a', 'f', n
FROM generate_series(1, 2000) AS n;
INSERT INTO coatcheck.job (
    id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, correlation_id,
    chain_id, updated_at, status, finished_at, expires_at, tombstone_until, error_category, dead_lettered_at
)
SELECT 'job_d' || n, 't', 'o', '1', 5, 5, n, n, 'c', 'c', n, 'failed', n, n, n, 'timeout', n
FROM generate_series(1, 2000) AS n;
ANALYZE
"""

DRAINED = """
INSERT INTO coatcheck.ready
SELECT 'o', 't', 5, 'r' || lpad(n::text, 9, '0'), 1, 1, 0, 0, 0, false, NULL, 1 FROM generate_series(1, 50000) AS n;
DELETE FROM coatcheck.ready WHERE job_id < 'r000049998' OR tenant <> 't';
ANALYZE coatcheck.ready;
INSERT INTO coatcheck.ready
SELECT 'o', 't', 5, 's' || lpad(n::text, 9, '0'), 1, 1, 0, 0, 0, false, NULL, 1 FROM generate_series(1, 5000) AS n
"""

CROWD = """
INSERT INTO coatcheck.turn SELECT 'o', 'more-' || n, true, n, true FROM generate_series(1, 10000) AS n;
INSERT INTO coatcheck.turn SELECT 'o', 'free-' || n, true, 20000 + n, false FROM generate_series(1, 2) AS n
"""

SEEKS = {
    "accept": ["turn_held_in_order", "turn_in_order", "turn_pkey"],
    "put_waiting": ["turn_held_in_order", "turn_in_order", "turn_pkey"],
    "next_turns": ["ready_pkey", "scheduled_in_order", "turn_in_order"],
    "lease_ready": ["job_pkey", "payload_pkey", "ready_pkey"],
    "take_due": ["scheduled_in_order", "scheduled_pkey"],
    "take_waiting": ["ready_pkey", "scheduled_pkey"],
    "beat": ["lease_pkey"],
    "end_leases": ["job_pkey", "lease_pkey"],
    "end_succeeded": ["deadline_pkey", "job_pkey", "lease_pkey"],
    "write_endings": ["deadline_pkey", "job_pkey"],
    "find_keys": ["idempotency_key_pkey"],
    "find_jobs": [
        "inbox_by_tenant",
        "job_pkey",
        "lease_pkey",
        "ready_pkey",
        "result_pkey",
        "scheduled_pkey",
        "tombstone_pkey",
    ],
    "list_jobs": [
        "inbox_by_tenant",
        "inbox_pkey",
        "job_by_tenant",
        "job_pkey",
        "lease_by_operation",
        "lease_pkey",
        "ready_pkey",
        "result_pkey",
        "scheduled_pkey",
    ],
    # Read through in the order of the ids, on purpose: an index on the ends would be rewritten by every heartbeat.
    "rescue_leases": ["job_pkey", "lease_pkey"],
    "count_running": ["lease_by_operation"],
    "overdue_by_deadline": ["deadline_pkey", "lease_pkey"],
    "overdue_by_queue_limit": ["ready_by_age"],
    "expired_jobs": ["job_by_expiry"],
    "bury": ["attempt_pkey", "job_pkey", "payload_pkey", "result_pkey"],
    "delete_effects": ["effect_pkey", "job_by_chain", "job_pkey"],
    "delete_results": ["result_by_expiry", "result_pkey"],
    "delete_tombstones": ["tombstone_by_end", "tombstone_pkey"],
    "delete_keys": ["idempotency_key_by_expiry", "idempotency_key_pkey"],
    "hold_turns": ["turn_pkey"],
    "count_queued": ["inbox_by_tenant", "ready_pkey", "scheduled_by_tenant", "turn_pkey"],
    "count_running_in": ["lease_by_operation"],
    "withhold_turns": ["turn_pkey"],
    "restore_turns": ["turn_held", "turn_held_in_order", "turn_in_order", "turn_pkey"],
    "held_turns": ["turn_held"],
    "held_turns_of": ["turn_held"],
    "leave_turns": ["ready_pkey", "turn_pkey"],
    "advance_turns": ["turn_pkey"],
    "look_into_inbox": ["inbox_pkey"],
    "measure_revocation": ["inbox_by_tenant", "job_by_tenant", "lease_by_operation"],
    "take_inbox": ["inbox_pkey", "job_pkey", "tombstone_pkey"],
    "take_from_inbox": ["inbox_by_tenant", "job_pkey", "tombstone_pkey"],
    "find_keys_in_inbox": ["inbox_by_key"],
    "read_outbox": ["outbox_pkey"],
    "survey_jobs": ["inbox_pkey", "job_pkey", "lease_pkey"],
    "survey_tenant": ["inbox_by_tenant", "job_by_tenant", "job_pkey", "lease_pkey"],
    "survey_running": ["lease_pkey"],
    "survey_dead_letters": ["dead_letter"],
    "next_dead_letters": ["dead_letter"],
    "find_tenant_of": ["inbox_pkey", "job_pkey", "tombstone_pkey"],
    "list_operations": ["job_by_tenant"],
}


@pytest.fixture
async def plans() -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    dsn = await shared_server().new_database()
    async with opened(dsn):
        pass
    connection = await connect(dsn)
    await connection.execute(SEED)
    yield connection
    await connection.close()


async def test_hot_statements_seek(plans: "asyncpg.Connection[asyncpg.Record]") -> None:
    found = {}
    for name in SEEKS:
        lines = await _plan(plans, name)
        assert not [line for line in lines if "Seq Scan" in line], name
        found[name] = sorted(
            {word for line in lines if "Scan" in line for word in line.split() if "_" in word} & _INDEXES
        )
    assert found == SEEKS


async def test_a_claim_keeps_its_plan_when_statistics_are_of_a_drained_queue(
    plans: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    for statement in DRAINED.split(";"):
        await plans.execute(statement)
    assert not [line for name in SEEKS for line in await _plan(plans, name) if "Bitmap" in line]
    lines = await _plan(plans, "lease_ready")
    found = {line.strip(" ->") for line in lines if "Scan" in line and "ready" in line and "CTE" not in line}
    assert found == {"Index Scan using ready_pkey on ready", "Tid Scan on ready r_1"}


async def test_a_claim_reads_no_turn_that_is_held(plans: "asyncpg.Connection[asyncpg.Record]") -> None:
    await plans.execute(CROWD)
    await plans.execute(f"PREPARE one AS {sql('next_turns')}")
    explained = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE one"
    ((text,),) = await plans.fetch(explained + "(ARRAY['o'], ARRAY[3], ARRAY[2])")
    nodes = list(_nodes(json.loads(text)[0]["Plan"]))
    assert not [node for node in nodes if node.get("Rows Removed by Filter")]
    (turns,) = [node for node in nodes if node.get("Index Name") == "turn_in_order"]
    assert turns["Actual Rows"] == 2
    assert turns["Shared Hit Blocks"] + turns["Shared Read Blocks"] <= 4


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


async def _plan(connection: "asyncpg.Connection[asyncpg.Record]", name: str) -> list[str]:
    count = max((int(number) for number in re.findall(r"\$(\d+)", sql(name))), default=0)
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    await connection.execute(f"PREPARE one AS {sql(name)}")
    rows = await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE one{values}")
    await connection.execute("DEALLOCATE one")
    return [row[0] for row in rows]


_INDEXES = {index for seeks in SEEKS.values() for index in seeks} | {"turn_in_order", "ready_by_age", "job_by_tenant"}
