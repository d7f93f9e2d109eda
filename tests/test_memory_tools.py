"""What the tools read with which a model searches memory: never more than the thread, its digest and its author allow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chat.answers.memory_tools import ToolFindings, ToolScope, call_label, read_scope, run_tool
from chat.llm.tool_calls import ToolCall
from chat.models import Thread
from chat.turns.digest_scope import DigestScope
from memory.api import DateRange, RecallFilter
from memory.exchanges.feedback import set_feedback
from memory.spaces import access
from tests.factories import ago, document, exchange, group, thread

pytestmark = pytest.mark.django_db


def scope_of(in_thread: Thread, **options: Any) -> ToolScope:
    usual = {"endpoint_name": "", "digest_scope": None, "exclude": frozenset(), "passages": {}}
    return read_scope(in_thread.id, in_thread.owner_id, **(usual | options))


def call(scope: ToolScope, name: str, **arguments: Any) -> ToolFindings:
    return run_tool(ToolCall("1", name, json.dumps(arguments)), scope)


def test_a_digest_of_chosen_spaces_reads_only_these(memory, person):
    crew = group("Crew", person)
    in_thread = thread(person)
    assert scope_of(in_thread).spaces > {crew.pk}

    digest = DigestScope(DateRange(ago(days=1), ago()), frozenset({crew.pk})).as_json()
    assert scope_of(in_thread, digest_scope=digest).spaces == {crew.pk}


def test_documents_outside_the_recall_filter_of_the_thread_are_not_listed(memory, person):
    manual = document(person, "manual.txt", "The valve opens at 4.2 bar.")
    document(person, "plan.txt", "The key hangs behind the stove.")
    in_thread = thread(person)
    assert "plan.txt" in call(scope_of(in_thread), "list_documents").text

    Thread.objects.update(recall_filter=RecallFilter(documents=(manual.pk,)).as_json())
    listed = call(scope_of(in_thread), "list_documents").text
    assert "manual.txt" in listed
    assert "plan.txt" not in listed


def test_reading_on_leaves_out_what_the_filter_excludes_and_what_is_not_relevant(memory, person):
    in_thread = thread(person)
    about = {"thread_id": in_thread.pk, "space": access.personal_space(person.pk)}
    first, untagged, irrelevant, wanted = (
        exchange(person, text, timestamp=ago(minutes=9 - at), metadata={"zone": zone}, **about)
        for at, (text, zone) in enumerate((("One", "A"), ("Two", "B"), ("Three", "A"), ("Four", "A")))
    )
    scope = scope_of(in_thread, passages={1: first.pk})
    assert len(call(scope, "read_more", passage=1).hits) == 3

    set_feedback(person.pk, irrelevant, "irrelevant")
    Thread.objects.update(recall_filter=RecallFilter(metadata={"zone": "A"}).as_json())
    hits = call(scope_of(in_thread, passages={1: first.pk}), "read_more", passage=1).hits
    assert [hit.exchange.id for hit in hits] == [wanted.pk]
    assert untagged.pk != wanted.pk


def test_half_a_character_in_a_query_is_shown_as_a_replacement_character():
    assert call_label(ToolCall("call-1", "search_memory", r'{"query": "Bergen \ud83d"}')) == "Bergen \ufffd"
