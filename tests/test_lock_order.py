"""What writes the same rows at the same time locks them in the same order, so that neither is ended as a deadlock."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from django.db import DatabaseError, connection

from cato_web.accounts.models import User
from memory import api
from memory.exchanges import forgetting, lifecycle, records
from memory.exchanges.lifecycle import NewExchange
from memory.exchanges.records import NewRecord
from memory.index import generations
from memory.models import Exchange, Space
from tests.factories import exchange, group

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite writes one transaction after the other"),
]


def run_together(*acts: Callable[[], object]) -> list[DatabaseError]:
    """Run all of these at the same time, each on a connection of its own; return their errors."""
    errors: list[DatabaseError] = []

    def run(act: Callable[[], object]) -> None:
        try:
            act()
        except DatabaseError as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return errors


def pause_after(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> threading.Event:
    """Let the first call of this function pause at its end, while others wait for the event that is returned."""
    has_begun, original = threading.Event(), getattr(module, name)

    def call(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        if not has_begun.is_set():
            has_begun.set()
            time.sleep(0.5)
        return result

    monkeypatch.setattr(module, name, call)
    return has_begun


def forget_after(event: threading.Event, ids: Sequence[uuid.UUID], by: User) -> Callable[[], object]:
    return lambda: event.wait(10) and api.forget(ids, by=by.pk)


@pytest.mark.usefixtures("dedicated_collections")
def test_two_people_forget_in_the_same_collections(memory: Any, person: User, monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = [group(name, person) for name in ("Crew", "Office")]
    first, second = ([exchange(person, f"Buoy {n}", space=space).pk for space in spaces] for n in range(2))
    memory.index_pending()
    monkeypatch.setattr(forgetting, "_BATCH_SIZE", 1)
    has_begun = pause_after(monkeypatch, generations, "mark_purge_needed")

    errors = run_together(lambda: api.forget(first, by=person.pk), forget_after(has_begun, second[::-1], person))

    assert not errors
    assert not Exchange.objects.filter(forgotten_at=None).exists()


def test_messages_are_forgotten_while_an_import_extends_them(
    memory: Any, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [exchange(person, f"Buoy {n}", turn_id=uuid.uuid4()) for n in range(3)]
    rows.sort(key=lambda row: row.pk, reverse=True)
    has_begun = pause_after(monkeypatch, lifecycle, "update_exchange")
    extended = [
        NewExchange(
            space=row.space, owner_id=person.pk, user_message="Buoy is out", source="import", turn_id=row.turn_id
        )
        for row in rows
    ]

    errors = run_together(
        lambda: api.remember_many(extended), forget_after(has_begun, [row.pk for row in rows], person)
    )

    assert not errors
    assert not Exchange.objects.filter(forgotten_at=None).exists()


def test_a_message_is_forgotten_with_the_one_after_it_while_it_is_edited(
    memory: Any, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    later, earlier = sorted([uuid.uuid4(), uuid.uuid4()])
    session = uuid.uuid4()
    row, _following = (
        exchange(person, f"Message {id}", id=id, turn_id=id, session_id=session) for id in (earlier, later)
    )
    has_begun = pause_after(monkeypatch, lifecycle, "index_terms")

    errors = run_together(
        lambda: lifecycle.update_exchange(row, user_message="Another text", assistant_message="Noted."),
        forget_after(has_begun, [later, earlier], person),
    )

    assert not errors
    assert not Exchange.objects.filter(forgotten_at=None).exists()


def test_records_are_deleted_while_they_are_replaced(
    memory: Any, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = api.personal_space(person.pk)
    names = {id: str(n) for n, id in enumerate(store_records(space, person, "former"))}
    in_reverse = [names[id] for id in sorted(names, reverse=True)]
    has_begun = pause_after(monkeypatch, records, "update_exchange")

    errors = run_together(
        lambda: store_records(space, person, "new", names=in_reverse), forget_after(has_begun, list(names), person)
    )

    assert not errors
    assert not Exchange.objects.filter(forgotten_at=None).exists()


def store_records(space: Space, person: User, text: str, names: Iterable[str] = "012") -> list[uuid.UUID]:
    return api.upsert_records([NewRecord(name, f"{text} {name}") for name in names], space=space, owner_id=person.pk)
