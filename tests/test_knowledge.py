"""Statements have readable sources, follow them, and are decided about by readers."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.errors import InvalidInputError, NotFoundError, StatementConflictError
from memory.exchanges import lifecycle
from memory.exchanges.erasure import erase_forgotten
from memory.exchanges.forgetting import forget
from memory.exchanges.moving import move_thread
from memory.exchanges.receipts import receipt_for
from memory.knowledge import decisions
from memory.knowledge.statements import NewStatement, NewSupport, add_statements, readable_statements
from memory.knowledge.unread import is_due, unread_exchanges
from memory.models import Exchange, Space, Statement, StatementConflict, Support
from memory.spaces import access
from tests.factories import PersonFactory, ago, document, exchange, group, statement

pytestmark = pytest.mark.django_db

RETRIES = "A buoy makes at most 28 retries a day."
State = Statement.State


def said(person: Any, text: str, space: Space | None = None, **fields: Any) -> Exchange:
    return exchange(person, text, space=space or access.team_space(), **fields)


def seen_by(person: Any) -> list[str]:
    rows = readable_statements(access.readable_space_ids(person.id)).order_by("exchange__user_message")
    return list(rows.values_list("exchange__user_message", flat=True))


def test_a_statement_is_an_exchange_of_its_first_author_dated_by_its_last_source(memory, person):
    other = PersonFactory()
    later = said(person, "28 retries, as before.", timestamp=ago(days=1))
    earlier = said(other, "From now on 28 retries.", timestamp=ago(days=9))

    added = statement(later, earlier)

    assert (added.exchange.owner_id, added.exchange.timestamp) == (other.id, later.timestamp)
    assert (added.first_said_at, added.last_said_at) == (earlier.timestamp, later.timestamp)
    memory.index_pending()
    hits = memory.search("How many retries does a buoy make?", spaces=frozenset({later.space_id})).results
    assert RETRIES in [hit.exchange.user_message for hit in hits]


def test_only_readers_of_the_space_see_it(memory, person):
    outsider = PersonFactory()
    statement(said(person, "From now on 28 retries.", group("Hardware", person)))

    assert (seen_by(person), seen_by(outsider)) == ([RETRIES], [])
    with pytest.raises(NotFoundError):
        decisions.confirm(outsider.id, Statement.objects.get().pk, revision=1)


def test_a_statement_is_forgotten_with_its_only_source_and_counted(memory, person):
    source = said(person, "From now on 28 retries.")
    added = statement(source)
    memory.index_pending()

    forget([source.pk], by=person.id)
    erase_forgotten()

    assert seen_by(person) == []
    assert not Statement.objects.exists()
    assert not Support.objects.exists()
    assert Exchange.objects.get(pk=added.pk).user_message == ""
    receipt = receipt_for([source.pk])
    assert (receipt.exchanges, receipt.statements, receipt.under_way) == (1, 1, 0)


def test_a_statement_that_loses_one_of_its_sources_is_forgotten_and_the_others_are_read_again(memory, person):
    one, other = said(person, "From now on 28 retries."), said(person, "28 retries a day per buoy.")
    statement(one, other)

    forget([one.pk], by=person.id)

    assert seen_by(person) == []
    assert not Exchange.objects.get(pk=other.pk).is_extracted
    assert statement(other).exchange.user_message == RETRIES, "the forgotten one, not erased yet, is not known"


def test_a_statement_stays_if_another_source_has_its_words(memory, person):
    one, other = said(person, "From now on 28 retries."), said(person, f"So: {RETRIES}")
    statement(one, other)

    forget([one.pk], by=person.id)

    assert seen_by(person) == [RETRIES]
    assert [support.exchange_id for support in Support.objects.all()] == [other.pk]


@pytest.mark.parametrize("forgotten", ["first", "last"])
def test_a_statement_that_stays_has_author_and_dates_of_its_other_sources(memory, person, forgotten):
    olga = PersonFactory()
    first = said(olga, f"So: {RETRIES}", timestamp=ago(days=300))
    last = said(person, f"Again: {RETRIES}", timestamp=ago(days=3))
    one = statement(first, last)
    gone, stays = (first, last) if forgotten == "first" else (last, first)

    forget([gone.pk], by=gone.owner_id)

    one = Statement.objects.select_related("exchange").get(pk=one.pk)
    assert (one.first_said_at, one.last_said_at) == (stays.timestamp, stays.timestamp)
    assert (one.exchange.owner_id, one.exchange.timestamp) == (stays.owner_id, stays.timestamp)


def test_a_statement_is_forgotten_when_its_source_moves_to_another_space(memory, person):
    thread_id = uuid.uuid4()
    statement(said(person, "From now on 28 retries.", thread_id=thread_id))

    move_thread(thread_id, to=access.personal_space(person.id), by=person.id)

    assert not Statement.objects.exists()


def test_a_statement_is_hidden_and_shown_again_with_its_sources(memory, person):
    source = said(person, "From now on 28 retries.")
    statement(source)

    lifecycle.deactivate([source.pk])
    assert seen_by(person) == []

    lifecycle.activate([source.pk])
    assert seen_by(person) == [RETRIES]


def test_a_changed_text_without_the_supporting_words_ends_the_statement(memory, person):
    source = said(person, "From now on 28 retries.")
    statement(source)

    lifecycle.update_exchange(source, user_message="From now on 28 retries. Really.", assistant_message="")
    assert seen_by(person) == [RETRIES]

    lifecycle.update_exchange(source, user_message="Never mind.", assistant_message="")
    assert not Statement.objects.exists()


def test_a_source_that_changed_since_it_was_read_gives_no_statement(memory, person):
    source = said(person, "From now on 28 retries.")
    read = NewSupport(source.pk, source.user_message, source.version)
    lifecycle.update_exchange(source, user_message="From now on 40 retries.", assistant_message="")

    new = NewStatement(text=RETRIES, kind="fact", topic="Uplink", supports=[read])
    assert add_statements(source.space, [new], read=[read]) == []
    assert not Exchange.objects.filter(is_extracted=True).exists()


def test_extraction_twice_adds_nothing(memory, person):
    source = said(person, "From now on 28 retries.")
    statement(source)
    support = NewSupport(source.pk, source.user_message, source.version)

    again = NewStatement(text=RETRIES, kind="fact", topic="Uplink", supports=[support])
    assert add_statements(source.space, [again], read=[support]) == []


def test_a_statement_can_be_so_again_after_it_was_superseded(memory, person):
    first, other = said(person, "28 retries.", timestamp=ago(days=9)), said(person, "Now 40.", timestamp=ago(days=5))
    superseded, current = statement(first), statement(other, text="A buoy makes at most 40 retries a day.")
    decisions.supersede(superseded, by_statement=current, by=None)
    before, after = said(person, "28.", timestamp=ago(days=7)), said(person, "28 again.", timestamp=ago(days=1))

    def add(source: Exchange) -> list[Statement]:
        support = NewSupport(source.pk, source.user_message, source.version)
        return add_statements(
            source.space, [NewStatement(text=RETRIES, kind="fact", topic="Uplink", supports=[support])], read=[support]
        )

    assert add(before) == [], "what was said before it was superseded"
    (again,) = add(after)
    assert again.state == State.CURRENT
    assert add(after) == [], "it is current"


def test_a_statement_can_be_so_again_after_its_correction_was_forgotten(memory, person):
    added = statement(said(person, "From now on 28 retries."))
    new = decisions.correct(person.id, added.pk, "A buoy makes at most 30 retries a day.", revision=1)
    old = said(person, "28 retries.", timestamp=ago(days=1))
    forget([Exchange.objects.get(source=Exchange.Source.NOTE).pk], by=person.id)
    assert not Statement.objects.filter(pk=new.pk).exists()

    def add(source: Exchange) -> list[Statement]:
        support = NewSupport(source.pk, source.user_message, source.version)
        again = NewStatement(text=RETRIES, kind="fact", topic="Uplink", supports=[support])
        return add_statements(source.space, [again], read=[support])

    assert add(old) == [], "what was said before it was corrected"
    assert [row.state for row in add(said(person, "28 again."))] == [State.CURRENT]


def test_a_statement_is_hidden_with_the_document_that_it_was_read_from(memory, person):
    uploaded = document(person, "retries.txt", "From now on 28 retries. " * 9, space=access.team_space())
    statement(uploaded.live_version.chunks.first().exchange)
    assert seen_by(person) == [RETRIES]

    memory.forget_documents([uploaded.pk], by=person.id)

    assert seen_by(person) == []


def test_a_rejected_statement_is_gone_and_does_not_come_back(memory, person):
    one, other = said(person, "From now on 28 retries."), said(person, "28 retries a day per buoy.")
    added = statement(one, other)

    decisions.reject(person.id, added.pk, revision=1)
    forget([one.pk], by=person.id)

    assert seen_by(person) == []
    support = NewSupport(other.pk, other.user_message, other.version)
    again = NewStatement(text=RETRIES, kind="fact", topic="Uplink", supports=[support])
    assert add_statements(other.space, [again], read=[support]) == []


def test_a_correction_is_a_note_whose_statement_supersedes_the_former(memory, person):
    added = statement(said(person, "From now on 28 retries."))

    new = decisions.correct(person.id, added.pk, "A buoy makes at most 30 retries a day.", revision=1)

    added.refresh_from_db()
    assert (added.state, added.superseded_by, added.state_set_by_id) == (State.SUPERSEDED, new, person.id)
    assert (new.state, new.confirmed_by_id, new.topic) == (State.CURRENT, person.id, "Uplink")
    note = Exchange.objects.get(source=Exchange.Source.NOTE)
    assert (note.owner_id, note.space, note.user_message) == (
        person.id,
        added.exchange.space,
        new.exchange.user_message,
    )


@pytest.mark.parametrize("text", [" ", "x" * 281, RETRIES])
def test_a_correction_is_refused_with_a_reason(memory, person, text):
    added = statement(said(person, "From now on 28 retries."))

    with pytest.raises(InvalidInputError):
        decisions.correct(person.id, added.pk, text, revision=1)


def test_a_correction_to_a_rejected_text_which_nobody_sees_is_refused_with_that_reason(memory, person):
    rejected = statement(said(person, "The limit is 30."), text="A buoy makes at most 30 retries a day.")
    decisions.reject(person.id, rejected.pk, revision=1)
    added = statement(said(person, "From now on 28 retries."))

    with pytest.raises(InvalidInputError, match="Somebody rejected this statement"):
        decisions.correct(person.id, added.pk, "A buoy makes at most 30 retries a day.", revision=1)


def test_a_change_based_on_an_older_revision_is_refused(memory, person):
    added = statement(said(person, "From now on 28 retries."))
    decisions.confirm(person.id, added.pk, revision=1)

    with pytest.raises(StatementConflictError):
        decisions.reject(person.id, added.pk, revision=1)
    assert seen_by(person) == [RETRIES]


def conflicting(person: Any) -> tuple[Statement, Statement]:
    one = statement(said(person, "From now on 28 retries."))
    other = statement(said(person, "The limit is 40."), text="A buoy makes at most 40 retries a day.")
    decisions.contradict(one, other)
    return Statement.objects.get(pk=one.pk), Statement.objects.get(pk=other.pk)


def test_of_two_conflicting_statements_the_kept_one_supersedes_the_other(memory, person):
    one, other = conflicting(person)
    assert (one.state, other.state) == (State.CONFLICTING, State.CONFLICTING)

    kept = decisions.keep(person.id, one.pk, other_id=other.pk, revision=one.revision)

    other.refresh_from_db()
    assert (kept.state, other.state, other.superseded_by) == (State.CURRENT, State.SUPERSEDED, kept)
    assert (kept.confirmed_by, other.confirmed_by) == (person, None)
    assert not StatementConflict.objects.exists()


def test_both_conflicting_statements_can_be_kept(memory, person):
    one, _other = conflicting(person)

    decisions.keep(person.id, one.pk, other_id=None, revision=one.revision)

    assert set(Statement.objects.values_list("state", flat=True)) == {State.CURRENT}


def test_a_conflict_ends_when_one_of_the_two_is_forgotten(memory, person):
    _one, other = conflicting(person)

    forget([other.pk], by=person.id)

    assert Statement.objects.get().state == State.CURRENT
    assert seen_by(person) == [RETRIES]
    assert Exchange.objects.get(user_message="The limit is 40.").forgotten_at is None


def test_a_space_is_due_once_it_is_quiet(memory, person):
    source = said(person, "From now on 28 retries.")
    memory.index_pending()
    space = source.space_id

    assert [row.pk for row in unread_exchanges(space)] == [source.pk]
    assert not is_due(space, timezone.now())
    assert not is_due(space, timezone.now() + timedelta(minutes=9))
    assert is_due(space, timezone.now() + timedelta(minutes=11))
    statement(source)
    memory.index_pending()
    assert not is_due(space, timezone.now() + timedelta(minutes=11)), "neither what was read nor statements"
