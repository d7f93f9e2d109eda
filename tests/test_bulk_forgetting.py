"""Every way to forget many exchanges at once erases them all, through the pages of a running Cato."""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Callable

import pytest

from tests.fake_endpoint import FakeEndpoint
from tests.server import PASSWORD, Cato, Client, wait_for

LONG_AGO = "2020-02-02T12:00:00Z"
# Long enough to be split into several notes.
LONG = "The ferry to Halden leaves at noon. It is painted green and carries forty cars across the fjord. " * 20


@pytest.fixture(autouse=True)
def plain_answers(endpoint: FakeEndpoint) -> None:
    """Restore the endpoint's script after other tests."""
    endpoint.script("cato", answer="All right.")


def updated_notes(person: Client) -> list[str]:
    """Return the ids of consecutive notes that were embedded, changed and embedded again."""
    api_client = person.api_client()
    stored = api_client.post("/api/exchanges", json={"text": f"{uuid.uuid4()} {LONG}", "timestamp": LONG_AGO}).json()
    ids = [row["id"] for row in stored["exchanges"]]
    assert len(ids) > 1
    update_exchanges(person, ids)
    return ids


def update_exchanges(person: Client, ids: list[str]) -> None:
    """Give exchanges a second version in the index, like a resumed answer."""
    api_client = person.api_client()
    for id in ids:
        assert (
            api_client.patch(f"/api/exchanges/{uuid.UUID(id)}", json={"metadata": {"revised": True}}).status_code == 200
        )


def wait_for_embeddings(cato: Cato, ids: list[str]) -> None:
    wait_for(lambda: all(embedded_version(cato, id) == 2 for id in ids), "the second version to be embedded")


def embedded_version(cato: Cato, id: str) -> int:
    rows = cato.sql(
        "SELECT version FROM memory_embeddingjob WHERE exchange_id = ? AND state = 'done'", uuid.UUID(id).hex
    )
    return rows[0][0] if rows else 0


def is_erased(cato: Cato, id: str) -> bool:
    row = cato.sql("SELECT user_message, erased_at FROM memory_exchange WHERE id = ?", uuid.UUID(id).hex)
    return bool(row[0][0] == "" and row[0][1])


def forget_in_bulk(administrator: Client, person: Client, ids: list[str]) -> None:
    form = {"exchange": ids, "filters": "", "confirmed": str(len(ids))}
    assert administrator.post("/admin/exchanges/forget", form).status_code == 302


def delete_account(administrator: Client, person: Client, ids: list[str]) -> None:
    response = person.post("/settings/delete-account", {"email": person.email, "password": PASSWORD})
    assert response.status_code == 302, response.text[:500]


def apply_retention(administrator: Client, person: Client, ids: list[str]) -> None:
    counted = administrator.post("/admin/retention", {"api": "365"}).text
    assert re.search(rf"{len(ids)} exchanges<", counted), counted
    previewed = re.search(r'name="previewed"\s+value="([^"]+)"', counted)
    assert previewed, counted
    form = {"api": "365", "previewed": html.unescape(previewed[1])}
    assert administrator.post("/admin/retention", form).status_code == 302


@pytest.mark.parametrize("forget", [forget_in_bulk, delete_account, apply_retention])
def test_consecutive_updated_notes_are_all_erased(
    cato: Cato, administrator: Client, forget: Callable[[Client, Client, list[str]], None]
) -> None:
    person = cato.join(administrator, "Erin Leaving")
    ids = updated_notes(person)
    wait_for_embeddings(cato, ids)

    forget(administrator, person, ids)

    wait_for(lambda: all(is_erased(cato, id) for id in ids), "everything to be erased", seconds=60)
    assert cato.sql("SELECT count(*) FROM memory_erasurejob WHERE state <> 'done'") == [(0,)]


def test_a_deleted_thread_with_updated_exchanges_is_erased(cato: Cato, administrator: Client, alice: Client) -> None:
    thread = alice.send_message("The safe combination is 12-34-56.")
    find = "SELECT id FROM memory_exchange WHERE thread_id = ?"

    def exchanges(count: int) -> list[str]:
        rows = cato.sql(find, uuid.UUID(thread).hex)
        return [row[0] for row in rows] if len(rows) == count else []

    wait_for(lambda: exchanges(1), "the first exchange")
    alice.send_message("And who else knows it?", thread)
    ids = wait_for(lambda: exchanges(2), "the second exchange")
    update_exchanges(alice, ids)
    wait_for_embeddings(cato, ids)

    assert alice.api_client().delete(f"/api/threads/{thread}").status_code == 200

    wait_for(lambda: all(is_erased(cato, id) for id in ids), "everything to be erased", seconds=60)
