"""What runs for every message and in every sweep reads no whole table.

The tests read the plans of SQLite, which are the same for a store of any size.
"""

from __future__ import annotations

import re
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat import stats
from chat.models import Thread
from chat.turns.queue import start_all_queued
from chat.turns.stopping import interrupt_stale_answers
from memory.administration.filters import exchanges
from memory.api import ids_by_date, newest_in_spaces, parse_filter, readable_space_ids
from memory.knowledge.listing import StatementFilter, authors_of_statements, count_to_review, statement_ids
from tests.factories import PersonFactory, exchange, signed_in, sweep_memory
from tests.topology import TOPOLOGY

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(TOPOLOGY == "services", reason="PostgreSQL has statistics, and plans by them"),
]
LARGE = ("memory_exchange", "memory_embeddingjob", "memory_lexicalentry", "chat_turn", "chat_thread")
# Indexes of few rows, and those whose condition leaves nearly all of a large table.
SMALL = {
    "embedding_due", "embedding_failed", "turn_queued", "turn_active", "turn_not_complete", "exchange_to_erase",
    "thread_to_remove",
}  # fmt: skip
# Conditions that few rows meet.
KEYS = ("(id=?)", "(author_id=? AND client_key=?)", "(created_at>?)")


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
    return index is not None and (index[1] in SMALL or "autoindex" in index[1] or any(keys in step for keys in KEYS))


def test_a_sweep_without_due_work_reads_no_large_table(chroma):
    exchange(PersonFactory(), "The key hangs behind the clock.")
    sweep_memory()
    assert reads_of_large_tables(sweep_memory) == set()


def test_queued_messages_and_stale_answers_are_found_by_their_indexes(chroma):
    assert reads_of_large_tables(start_all_queued) == set()
    assert reads_of_large_tables(interrupt_stale_answers) == set()


def test_the_page_of_statements_begins_with_statements(chroma):
    spaces = readable_space_ids(PersonFactory().pk)
    for act in (
        lambda: statement_ids(spaces, StatementFilter()),
        lambda: authors_of_statements(spaces),
        lambda: count_to_review(spaces, None),
    ):
        assert reads_of_large_tables(act) == set()


def test_a_message_reads_the_answers_in_progress_and_not_all_of_its_author(chroma):
    author = PersonFactory()
    client = signed_in(author)
    reads = reads_of_large_tables(
        lambda: client.post("/", {"message": "Where is it?", "client_key": str(uuid.uuid4())})
    )
    assert not [step for step in reads if "chat_turn" in step or "memory_exchange" in step]


def test_lists_by_date_begin_with_the_newest_of_each_space(chroma):
    spaces = readable_space_ids(PersonFactory().pk)
    said = parse_filter({"said": {"$gte": timezone.now()}})
    steps = reads_of_large_tables(lambda: list(ids_by_date(spaces, said, newest=50)[:50]))
    assert [step.rpartition(" (")[2] for step in steps] == ["space_id=? AND timestamp>?)"]

    threads = Thread.objects.filter(deleted_at=None).order_by("-last_message_at")
    steps = reads_of_large_tables(lambda: list(newest_in_spaces(threads, spaces, 50, by="last_message_at")[:50]))
    # The first is that of row 50 of a space.
    conditions = {step.rpartition(" (")[2] for step in steps}
    assert conditions == {"space_id=?)", "space_id=? AND last_message_at>?)"}


def test_administrators_who_search_for_words_read_the_texts_with_them_only(chroma):
    spaces = readable_space_ids(PersonFactory().pk)
    assert reads_of_large_tables(lambda: list(exchanges({"q": "green lamp"}, visible_spaces=spaces).qs[:50])) == set()


def test_statistics_of_answers_read_those_of_the_month(chroma):
    spaces = readable_space_ids(PersonFactory().pk)
    for count in (stats.count_failures, stats.count_skipped_recalls, stats.token_usage):
        assert reads_of_large_tables(lambda count=count: count(spaces, since=timezone.now())) == set()
