"""What happens while nothing is due reads no whole table: the plans of SQLite, which are the same for a store of any size."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.turns.queue import start_all_queued
from memory import maintenance
from memory.api import readable_space_ids
from memory.knowledge.listing import StatementFilter, authors_of_statements, count_to_review, statement_ids
from tests.factories import PersonFactory, exchange
from tests.topology import TOPOLOGY

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(TOPOLOGY == "services", reason="PostgreSQL has statistics, and plans by them"),
]
LARGE = ("memory_exchange", "memory_embeddingjob", "memory_lexicalentry", "chat_turn", "chat_thread")
# Indexes of few rows, and those whose condition leaves nearly all of a large table.
SMALL = {"embedding_due", "embedding_failed", "turn_queued", "turn_active", "exchange_to_erase", "thread_to_remove"}


def reads_of_large_tables(act) -> set[str]:
    """Return the steps of the plans of all statements that read more of a large table than rows by their key."""
    with CaptureQueriesContext(connection) as captured:
        act()
    steps = set()
    for query in captured.captured_queries:
        if query["sql"].startswith("SELECT"):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                steps |= {row[3] for row in cursor.fetchall()}
    return {step for step in steps if any(table in step for table in LARGE) and not _is_cheap(step)}


def _is_cheap(step: str) -> bool:
    index = re.search(r"USING (?:COVERING )?INDEX (\w+)", step)
    return index is not None and (index[1] in SMALL or "(id=?)" in step or "autoindex" in index[1])


def test_a_sweep_without_work_reads_what_is_due(chroma):
    exchange(PersonFactory(), "The key hangs behind the clock.")
    maintenance.sweep()
    assert reads_of_large_tables(maintenance.sweep) == set()


def test_the_look_for_waiting_messages_reads_those(chroma):
    assert reads_of_large_tables(start_all_queued) == set()


def test_the_page_of_statements_begins_with_statements(chroma):
    spaces = readable_space_ids(PersonFactory().pk)
    for act in (
        lambda: statement_ids(spaces, StatementFilter()),
        lambda: authors_of_statements(spaces),
        lambda: count_to_review(spaces, None),
    ):
        assert reads_of_large_tables(act) == set()
