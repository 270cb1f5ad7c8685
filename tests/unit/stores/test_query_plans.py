"""Plans are pinned: a hot statement seeks by the index that was made for it and never scans or sorts a table."""

import re
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from coatcheck.stores.sqlite.connection import STATEMENTS_KEPT, open_writer
from coatcheck.stores.sqlite.schema import migrate
from coatcheck.stores.sqlite.statements import sql, sql_for_rows
from coatcheck.stores.sqlite.transaction import ROWS_AT_ONCE, ROWS_AT_ONCE_MAX

# What is scanned are the values that were bound.
GIVEN = re.compile(r"SCAN (\d+ CONSTANT ROWS?|CONSTANT ROW|\d+-ROW VALUES CLAUSE|ended|wanted|asked|seen)$")
SEEKS = {
    "find_key": ["idempotency_key USING PRIMARY KEY (tenant=? AND operation=? AND key=?)"],
    "next_turns": ["turn USING INDEX turn_in_order (operation=? AND is_waiting=? AND is_held=?)"],
    "join_turns": ["turn USING COVERING INDEX turn_in_order (operation=? AND is_waiting=? AND is_held=?)"] * 2,
    "forget_turns": [
        "turn USING INDEX turn_in_order (operation=? AND is_waiting=? AND is_held=? AND vstart<?)",
        "turn USING COVERING INDEX turn_in_order (operation=? AND is_waiting=? AND is_held=?)",
    ],
    "withhold_turns": ["turn USING PRIMARY KEY (operation=? AND tenant=?)"],
    "restore_turns": [
        "turn USING PRIMARY KEY (operation=? AND tenant=?)",
        *["t USING COVERING INDEX turn_in_order (operation=? AND is_waiting=? AND is_held=?)"] * 2,
    ],
    "held_turns": ["turn USING COVERING INDEX turn_held ((tenant,operation)>(?,?))"],
    "held_turns_of": ["t USING COVERING INDEX turn_held (tenant=?)"],
    "count_running_in": ["l USING COVERING INDEX lease_by_tenant (tenant=?)"],
    "count_queued": [
        "turn USING COVERING INDEX turn_in_order",
        "t USING COVERING INDEX turn_in_order (operation>?)",
        "t USING PRIMARY KEY (operation=? AND tenant=?)",
        "s USING COVERING INDEX scheduled_by_tenant (tenant=?)",
    ],
    "free_keys": ["idempotency_key USING PRIMARY KEY (tenant=? AND operation=? AND key=?)"],
    "next_ready": [
        "r USING PRIMARY KEY (operation=? AND tenant=?)",
        "j USING PRIMARY KEY (id=?)",
        "p USING PRIMARY KEY (job_id=?)",
    ],
    "delete_next_ready": ["ready USING PRIMARY KEY (operation=? AND tenant=? AND (priority,job_id)<(?,?))"],
    "delete_ready": ["ready USING PRIMARY KEY (operation=? AND tenant=? AND priority=? AND job_id=?)"],
    "delete_scheduled": ["scheduled USING COVERING INDEX scheduled_by_job (job_id=?)"],
    "delete_due": ["scheduled USING PRIMARY KEY (available_at=? AND job_id=?)"],
    "delete_outbox": ["outbox USING INTEGER PRIMARY KEY (rowid=?)"],
    "due_jobs": ["scheduled USING PRIMARY KEY (available_at<?)"],
    "next_due": ["scheduled USING PRIMARY KEY"],
    "beat": ["lease USING PRIMARY KEY (job_id=?)"],
    "open_leases": ["l USING PRIMARY KEY (job_id=?)", "j USING PRIMARY KEY (id=?)"],
    "end_leases": ["lease USING PRIMARY KEY (job_id=?)"],
    "rescue_lease": ["lease USING PRIMARY KEY (job_id=?)"],
    "own_keys": ["k USING PRIMARY KEY (tenant=? AND operation=? AND key=?)"],
    "delete_deadlines": ["deadline USING PRIMARY KEY (deadline_at=? AND job_id=?)"],
    "finish_jobs": ["job USING PRIMARY KEY (id=?)"],
    "find_job": [
        "j USING PRIMARY KEY (id=?)",
        "l USING PRIMARY KEY (job_id=?) LEFT-JOIN",
        "r USING PRIMARY KEY (operation=? AND tenant=? AND priority=? AND job_id=?) LEFT-JOIN",
        "s USING INDEX scheduled_by_job (job_id=?) LEFT-JOIN",
        "result USING PRIMARY KEY (job_id=?)",
    ],
    "list_open": ["job USING COVERING INDEX job_by_tenant (tenant=? AND operation=? AND status=? AND id<?)"],
    "list_finished": ["job USING INDEX job_by_tenant (tenant=? AND operation=? AND status=? AND id<?)"],
    "list_queued": [
        "j USING COVERING INDEX job_by_tenant (tenant=? AND operation=? AND status=? AND id<?)",
        "l USING PRIMARY KEY (job_id=?)",
    ],
    "overdue_by_deadline": ["d USING PRIMARY KEY (deadline_at<?)", "l USING PRIMARY KEY (job_id=?)"],
    "survey_jobs": ["j USING PRIMARY KEY (id>? AND id<?)", "l USING PRIMARY KEY (job_id=?)"],
    "survey_tenant": [
        "j USING INDEX job_by_tenant (tenant=? AND operation=? AND status=? AND id>? AND id<?)",
        "l USING PRIMARY KEY (job_id=?)",
    ],
    "survey_running": ["l USING PRIMARY KEY (job_id>? AND job_id<?)"],
    "survey_dead_letters": ["j USING INDEX dead_letter (id>? AND id<?)"],
    "next_dead_letters": ["j USING INDEX dead_letter (id>? AND id<?)"],
    "jobs_to_cancel": [
        "j USING COVERING INDEX job_by_tenant (tenant=? AND operation=? AND status=?)",
        "l USING PRIMARY KEY (job_id=?)",
    ],
    "jobs_to_erase": ["job USING COVERING INDEX job_by_tenant (tenant=? AND operation=? AND status=?)"],
    "overdue_by_queue_limit": [
        "r USING COVERING INDEX ready_by_age (operation=? AND attempt=? AND available_at<?)",
        "t USING PRIMARY KEY (name=?)",
    ],
    "expired_jobs": ["job USING COVERING INDEX job_by_expiry (expires_at>? AND expires_at<?)"],
    "delete_results": [
        "result USING PRIMARY KEY (job_id=?)",
        "result USING COVERING INDEX result_by_expiry (expires_at<?)",
    ],
    "delete_tombstones": [
        "tombstone USING PRIMARY KEY (job_id=?)",
        "tombstone USING COVERING INDEX tombstone_by_end (kept_until<?)",
    ],
}


@pytest.mark.parametrize("name", SEEKS)
def test_a_hot_statement_seeks(name: str, tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "jobs.db")
    migrate(connection, tmp_path / "jobs.db", "shop")
    for statement in _sizes(name):
        values = [None] * statement.count("?") or Zeros()
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        seeks = [step.removeprefix("SEARCH ") for step in plan if step.startswith("SEARCH")]
        assert seeks == SEEKS[name]
        assert not [
            step for step in plan if (step.startswith("SCAN") and not GIVEN.match(step)) or "TEMP B-TREE" in step
        ]


def _sizes(name: str) -> list[str]:
    """The statement; one for many rows as it is for one and for the most."""
    return [sql_for_rows(name, count) for count in (1, ROWS_AT_ONCE_MAX)] if "?" in sql(name) else [sql(name)]


NAMES = sorted(file.name.removesuffix(".sql") for file in (files("coatcheck.stores.sqlite") / "sql").iterdir())
FOR_MANY = [name for name in NAMES if "?" in sql(name)]


def test_every_statement_is_kept_once_it_is_prepared() -> None:
    others = len(NAMES) - len(FOR_MANY)
    assert others + len(FOR_MANY) * len(ROWS_AT_ONCE) <= STATEMENTS_KEPT
    longest_kept = apsw.Connection(":memory:").cache_stats()["max_cacheable_bytes"]
    assert max(len(sql_for_rows(name, ROWS_AT_ONCE_MAX)) for name in FOR_MANY) <= longest_kept


@pytest.mark.parametrize("name", FOR_MANY)
def test_rows_that_only_fill_up_are_passed_over(name: str, tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "jobs.db")
    migrate(connection, tmp_path / "jobs.db", "shop")
    before = connection.total_changes()
    statement = sql_for_rows(name, 4)
    rows = connection.execute(statement, [None] * statement.count("?")).fetchall()
    assert connection.total_changes() == before
    assert rows in ([], [("[]",)])


class Zeros(dict[str, int]):
    """Binds every parameter; plans do not depend on values."""

    def __missing__(self, key: str) -> int:
        return 0
