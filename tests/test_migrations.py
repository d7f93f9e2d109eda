"""Migrations that move data."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chat.models import ReaderMarks
from memory.spaces import access
from tests.factories import PersonFactory, ago
from tests.topology import only_long


@only_long
@pytest.mark.django_db(transaction=True)
def test_pinned_and_archived_threads_become_those_of_their_owners():
    person, reader = PersonFactory(), PersonFactory()
    pinned_at, archived_at, read_at = ago(days=1), ago(days=2), ago(days=3)
    executor = MigrationExecutor(connection)
    old = executor.migrate([("chat", "0005_attachments")]).apps
    try:
        common = {"owner_id": person.id, "space_id": access.team_space().id, "last_message_at": read_at}
        threads = old.get_model("chat", "Thread").objects
        pinned = threads.create(title="Pinned", pinned_at=pinned_at, **common)
        archived = threads.create(title="Archived", archived_at=archived_at, **common)
        threads.create(title="Neither", **common)
        markers = old.get_model("chat", "ReadMarker").objects
        for reader_id in (person.id, reader.id):
            markers.create(person_id=reader_id, thread=pinned, last_read_at=read_at)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())

    rows = ReaderMarks.objects.values_list("person_id", "thread_id", "last_read_at", "pinned_at", "archived_at")
    assert set(rows) == {
        (person.id, pinned.id, read_at, pinned_at, None),
        (reader.id, pinned.id, read_at, None, None),
        (person.id, archived.id, None, None, archived_at),
    }
