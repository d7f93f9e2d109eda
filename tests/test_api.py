"""The REST API: search, exchanges, documents, threads and records, with a token."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import UTC, datetime

import httpx
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from cato_web.api.urls import operations
from chat import services as chat
from chat.models import Thread
from memory.errors import VectorStoreUnavailableError
from memory.index import store
from memory.models import Document, Exchange
from memory.spaces import access
from tests.factories import (
    PersonFactory,
    api_client,
    document,
    exchange,
    group,
    process_documents,
    signed_in,
    thread,
    turn,
    upload,
)

pytestmark = pytest.mark.django_db

ARCHIVE = "The key of the archive hangs behind the door of the boiler room."
LONG = "The ferry to Halden leaves at noon. It is painted green and carries forty cars across the fjord. " * 30


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def api(alice):
    return api_client(alice)


def send(client: Client, method: str, path: str, body: object = None):
    """Send a JSON request and return the response."""
    data = None if body is None else json.dumps(body)
    return getattr(client, method)(f"/api{path}", data=data, content_type="application/json")


def error_code(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


# Authentication


def test_a_missing_or_invalid_token_is_refused(alice):
    browser = signed_in(alice)

    for client in (Client(), browser, Client(headers={"Authorization": "Bearer cato_wrong"})):
        answer = client.get("/api/me")
        assert error_code(answer) == (401, "no_token")
        assert answer["WWW-Authenticate"] == "Bearer"
        assert not answer.cookies


def test_a_token_is_limited_to_its_scopes(alice):
    reading = api_client(alice, "read")

    assert reading.get("/api/spaces").status_code == 200
    answer = send(reading, "post", "/exchanges", {"text": ARCHIVE})
    assert error_code(answer) == (403, "scope_missing")
    assert '"write"' in answer.json()["error"]["message"]
    assert not Exchange.objects.exists()
    assert error_code(send(reading, "post", "/ask", {"message": "Who has the key?"})) == (403, "scope_missing")
    assert error_code(api_client(alice, "write").get("/api/search", {"q": "key"})) == (403, "scope_missing")


def test_every_error_is_json(api):
    for path in ("/nothing", "/threads/5", "/exchanges/"):
        assert error_code(api.get(f"/api{path}")) == (404, "unknown_url"), path
    assert error_code(api.get(f"/api/threads/{uuid.uuid4()}")) == (404, "not_found")
    wrong = api.put("/api/me")
    assert error_code(wrong) == (405, "wrong_method")
    assert wrong["Allow"] == "GET"
    assert error_code(api.post("/api/recall", data="{", content_type="application/json")) == (422, "invalid")
    slip = send(api, "post", "/recall", {"messages": ["hello"], "max_token": 5})
    assert error_code(slip) == (422, "invalid")
    assert "max_token" in slip.json()["error"]["message"]


def test_an_unknown_query_parameter_is_refused_by_name(api):
    slip = api.get("/api/search?q=key&kk=2")
    assert error_code(slip) == (422, "invalid")
    assert "kk" in slip.json()["error"]["message"]
    assert "min_similarity" in slip.json()["error"]["message"]
    assert "limit" in api.get("/api/me?limit=2").json()["error"]["message"]
    assert error_code(Client().get("/api/me?limit=2")) == (401, "no_token"), "authentication comes first"


def test_the_api_leads_to_a_page_that_shows_every_operation(api):
    index = Client().get("/api").json()
    assert Client().get(index["openapi"]).json()["paths"].keys() > {"/api/search"}
    page = Client().get(index["description"]).content.decode()
    for operation in operations():
        assert f'id="{operation.view_func.__name__}"' in page
    assert "<script" not in page


def test_an_internal_error_reveals_no_details(api, monkeypatch):
    monkeypatch.setattr("memory.api.list_readable_spaces", lambda person_id: 1 / 0)

    answer = api.get("/api/spaces")

    assert error_code(answer) == (500, "broken")
    assert "division" not in answer.content.decode()


def test_the_spaces_are_those_that_the_person_may_read(alice, api):
    group("Archive", alice)
    group("Board", PersonFactory())

    names = [space["name"] for space in api.get("/api/spaces").json()["spaces"]]

    assert "Archive" in names
    assert "Board" not in names


# Exchanges and search


def test_a_stored_exchange_is_found_and_recalled(memory, alice, api):
    body = {"user_message": "Where is the key?", "assistant_message": ARCHIVE, "metadata": {"zone": "cellar"}}
    stored = send(api, "post", "/exchanges", body | {"timestamp": "2025-03-01T12:00:00+01:00"})
    assert stored.status_code == 201
    (row,) = stored.json()["exchanges"]
    assert (row["source"], row["timestamp"], row["metadata"]) == ("api", "2025-03-01T11:00:00Z", {"zone": "cellar"})
    memory.index_pending()

    (hit,) = api.get("/api/search", {"q": "where does the archive's key hang"}).json()["hits"]
    recalled = send(api, "post", "/recall", {"messages": ["Where does the key of the archive hang?"]}).json()

    assert hit["id"] == row["id"]
    assert -1 <= hit["similarity"] <= 1
    assert hit["reason"]
    assert [result["id"] for result in recalled["results"]] == [row["id"]]
    assert "boiler room" in recalled["context"]
    assert 'number="1"' in recalled["context"]


def test_search_reports_the_lexical_fallback(memory, alice, api, monkeypatch):
    exchange(alice, "The key hangs in the cellar.")
    memory.index_pending()
    assert api.get("/api/search", {"q": "key"}).json()["note"] == ""
    monkeypatch.setattr(store, "query", lambda *a: (_ for _ in ()).throw(VectorStoreUnavailableError()))
    found = api.get("/api/search", {"q": "key"}).json()
    assert (found["note"], [hit["similarity"] for hit in found["hits"]]) == ("words", [None])


def test_search_filters_by_space_source_time_person_and_similarity(memory, alice, api):
    bob = PersonFactory(name="Bob Team")
    ours = group("Archive", alice, bob)
    mine = exchange(alice, "The key hangs in the cellar.", timestamp=datetime(2024, 5, 1, tzinfo=UTC))
    shared = exchange(bob, "The key hangs in the attic.", space=ours, source="import")
    of_thread = exchange(alice, "The key hangs in the tower.", thread_id=thread(alice).id)
    stored = document(alice, "keys.txt", "The key hangs in the garage.")
    memory.index_pending()

    def found(**query: object) -> set[str]:
        hits = api.get("/api/search", {"q": "where the key hangs", "k": 50, **query}).json()["hits"]
        return {hit["id"] for hit in hits}

    assert len(found()) == 4
    assert found(space=str(ours.pk)) == found(space="Archive") == {str(shared.pk)}
    assert found(source="import") == {str(shared.pk)}
    assert found(who=str(bob.pk)) == {str(shared.pk)}
    assert found(until="2024-06-01") == {str(mine.pk)}
    assert str(mine.pk) not in found(since="2024-06-01")
    assert found(thread=str(of_thread.thread_id)) == {str(of_thread.pk)}
    assert found(document=str(stored.pk)) == found() - {str(mine.pk), str(shared.pk), str(of_thread.pk)}
    assert found(min_similarity="1") == set()


def test_search_filters_by_metadata_together_with_its_other_filters(memory, alice, api):
    north = exchange(alice, "The key hangs in the cellar.", metadata={"zone": "north"})
    exchange(alice, "The key hangs in the attic.", metadata={"zone": "south"})
    memory.index_pending()

    def found(**query: object) -> set[str]:
        hits = api.get("/api/search", {"q": "where the key hangs", "k": 50, **query}).json()["hits"]
        return {hit["id"] for hit in hits}

    assert len(found()) == 2
    assert found(filters='{"zone": "north"}') == {str(north.pk)}
    assert found(filters='{"zone": "north"}', until="2020-01-01") == set()
    assert error_code(api.get("/api/search", {"q": "key", "filters": "zone"})) == (422, "invalid")


@pytest.mark.parametrize(
    "query",
    [{}, {"q": " "}, {"q": "\x00"}, {"q": "a", "k": 0}, {"q": "a", "k": 101}, {"q": "a", "source": "radio"},
     {"q": "a", "since": "yesterday"}, {"q": "a", "since": "0001-01-01T00:00:00+14:00"}, {"q": "a", "who": "Bob"},
     {"q": "a", "min_similarity": "nan"}],
)  # fmt: skip
def test_an_invalid_search_explains_what_is_allowed(api, query):
    assert error_code(api.get("/api/search", query)) == (422, "invalid")


def test_a_long_note_is_split_and_its_parts_are_paginated(memory, api):
    stored = send(api, "post", "/exchanges", {"text": LONG, "metadata": {"about": "ferry"}}).json()["exchanges"]
    assert len(stored) > 2
    assert all(row["metadata"] == {"about": "ferry"} for row in stored)

    listed_ids, cursor = [], {}
    while True:
        page = api.get("/api/exchanges", {"limit": 2, "source": "api", **cursor}).json()
        listed_ids += [row["id"] for row in page["exchanges"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}

    assert sorted(listed_ids) == sorted(row["id"] for row in stored)
    assert error_code(api.get("/api/exchanges", {"cursor": "ä"})) == (422, "invalid")


def test_texts_are_cleaned_as_in_messages(api):
    (row,) = send(api, "post", "/exchanges", {"text": "a\x00 key \ud83d\ude00 \ud800"}).json()["exchanges"]

    assert row["user_message"] == "a key 😀 �"


@pytest.mark.parametrize(
    "body",
    [{}, {"text": "a", "user_message": "b"}, {"text": "\x00"}, {"user_message": " "}, {"assistant_message": "b"},
     {"text": "a", "metadata": {"x": {"y": 1}}}, {"text": "a", "metadata": {"n": 10**400}}, {"text": 5},
     {"text": "a", "timestamp": 5}, {"text": "a", "timestamp": "9999-12-31T23:59:59-14:00"}],
)  # fmt: skip
def test_an_invalid_exchange_is_refused_entirely(api, body):
    assert error_code(send(api, "post", "/exchanges", body)) == (422, "invalid")
    assert not Exchange.objects.exists()


def test_an_exchange_gets_metadata_from_its_owner_and_is_forgotten_with_a_receipt(memory, alice, api):
    ours = group("Archive", alice, PersonFactory())
    one = exchange(alice, "The key hangs in the cellar.", space=ours)
    other = api_client(next(person for person in ours.members.all() if person != alice))

    described = send(api, "patch", f"/exchanges/{one.pk}", {"metadata": {"zone": "cellar"}})
    assert described.json()["metadata"] == {"zone": "cellar"}
    assert error_code(send(other, "patch", f"/exchanges/{one.pk}", {"metadata": {}})) == (404, "not_found")
    assert error_code(other.delete(f"/api/exchanges/{one.pk}")) == (404, "not_found")
    assert other.get(f"/api/exchanges/{one.pk}").json()["metadata"] == {"zone": "cellar"}

    receipt = api.delete(f"/api/exchanges/{one.pk}").json()

    assert (receipt["exchanges"], receipt["under_way"]) == (1, 1)
    assert error_code(api.get(f"/api/exchanges/{one.pk}")) == (404, "not_found")


def test_a_disabled_store_is_reported(api, settings):
    store = settings.CATO.vector_store.model_copy(update={"enabled": False})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": store})

    assert error_code(send(api, "post", "/exchanges", {"text": ARCHIVE})) == (409, "disabled")
    assert error_code(api.get("/api/search", {"q": "key"})) == (409, "disabled")
    assert error_code(send(api, "post", "/recall", {"messages": ["Who has the key?"]})) == (409, "disabled")
    assert error_code(api.get("/api/context", {"text": "key"})) == (409, "disabled")


# Documents


def test_a_document_is_uploaded_tracked_downloaded_and_deleted(memory, api):
    file = SimpleUploadedFile("keys.txt", LONG.encode())
    answer = api.post("/api/documents", {"file": file, "metadata": json.dumps({"zone": "north"})})
    assert answer.status_code == 202
    found_row = answer.json()["document"]
    assert (found_row["name"], found_row["metadata"], found_row["newest"]["stage"]) == (
        "keys.txt",
        {"zone": "north"},
        "received",
    )
    path = f"/documents/{found_row['id']}"
    process_documents()

    ready = api.get(f"/api{path}").json()
    assert (ready["serving"], ready["newest"]["stage"]) == (1, "ready")
    assert ready["newest"]["done"] == ready["newest"]["total"] > 1
    assert b"".join(api.get(f"/api{path}/versions/1/original")) == LONG.encode()
    assert [row["id"] for row in api.get("/api/documents").json()["documents"]] == [found_row["id"]]

    again = api.post("/api/documents", {"file": SimpleUploadedFile("x", b"Another text."), "name": "keys.txt"}).json()
    assert (again["document"]["id"], again["document"]["newest"]["number"]) == (found_row["id"], 2)
    assert api.delete(f"/api{path}/versions/2").status_code == 200
    assert error_code(api.delete(f"/api{path}/versions/2")) == (404, "not_found")
    assert api.get(f"/api{path}").json()["newest"]["number"] == 1

    receipt = api.delete(f"/api{path}").json()
    assert receipt["exchanges"] == ready["newest"]["total"]
    assert error_code(api.get(f"/api{path}")) == (404, "not_found")


def test_a_document_gets_metadata_and_moves(memory, alice, api):
    ours = group("Archive", alice)
    stored = document(alice, "keys.txt", ARCHIVE)

    moved = send(api, "patch", f"/documents/{stored.pk}", {"space": "Archive", "metadata": {"zone": "north"}}).json()

    assert (moved["space_id"], moved["metadata"]) == (str(ours.pk), {"zone": "north"})
    taken = send(api, "patch", f"/documents/{stored.pk}", {"metadata": {"document": "mine"}})
    assert error_code(taken) == (422, "invalid")
    assert error_code(send(api, "patch", f"/documents/{stored.pk}", {"space": "Board"})) == (404, "not_found")


def test_a_refused_upload_leaves_nothing(api):
    empty = api.post("/api/documents", {"file": SimpleUploadedFile("a.txt", b"")})
    no_object = api.post("/api/documents", {"file": SimpleUploadedFile("a.txt", b"a"), "metadata": "zone"})
    no_file = api.post("/api/documents", {"name": "a"})

    for answer in (empty, no_object, no_file, send(api, "post", "/documents", {"file": "a"})):
        assert error_code(answer) == (422, "invalid")
    assert not Document.objects.exists()


def test_a_document_of_another_member_is_readable_but_not_changeable(memory, alice, api):
    ours = group("Archive", alice, bob := PersonFactory(name="Bob Team"))
    of_bob = upload(bob, "bob.txt", ARCHIVE, space=ours).version.document

    assert api.get(f"/api/documents/{of_bob.pk}").status_code == 200
    assert error_code(api.delete(f"/api/documents/{of_bob.pk}")) == (404, "not_found")
    assert error_code(send(api, "patch", f"/documents/{of_bob.pk}", {"metadata": {}})) == (404, "not_found")


# Threads


def test_a_thread_is_created_changed_and_deleted(alice, api):
    ours = group("Archive", alice)
    created = send(api, "post", "/threads", {"title": "  Keys\nand locks "})
    assert created.status_code == 201
    id = created.json()["id"]
    assert created.json()["title"] == "Keys and locks"

    changes = {"title": "Locks", "is_pinned": True, "is_remembered": False, "space": str(ours.pk)}
    changed = send(api, "patch", f"/threads/{id}", changes).json()
    assert {name: changed[name] for name in ("title", "is_pinned", "is_remembered")} == {
        name: changes[name] for name in ("title", "is_pinned", "is_remembered")
    }
    assert changed["space_id"] == str(ours.pk)
    archived = send(api, "patch", f"/threads/{id}", {"is_archived": True}).json()
    assert (archived["is_archived"], archived["is_pinned"]) == (True, False)
    assert api.get("/api/threads").json()["threads"] == []
    assert [row["id"] for row in api.get("/api/threads", {"archived": True, "q": "lock"}).json()["threads"]] == [id]

    assert api.delete(f"/api/threads/{id}").status_code == 200
    assert error_code(api.get(f"/api/threads/{id}")) == (404, "not_found")


def test_turns_are_paginated_with_their_sources(memory, alice, api):
    talk = thread(alice)
    body = exchange(alice, "Where is the key?", ARCHIVE)
    memory.index_pending()
    turns = [turn(talk, f"Question {n}", "It hangs there [1].") for n in range(3)]
    memory.log_recall(
        turns[0].id, memory.search("where is the key", spaces=access.readable_space_ids(alice.pk)).results
    )

    first = api.get(f"/api/threads/{talk.id}", {"limit": 2}).json()
    second_page = api.get(f"/api/threads/{talk.id}", {"limit": 2, "after": first["next"]}).json()

    assert [row["message"] for row in first["turns"] + second_page["turns"]] == [
        "Question 0",
        "Question 1",
        "Question 2",
    ]
    assert second_page["next"] is None
    (source,) = first["turns"][0]["sources"]
    assert (source["exchange_id"], source["number"], source["is_cited"]) == (str(body.pk), 1, True)
    assert first["turns"][1]["sources"] == []
    one = api.get(f"/api/threads/{talk.id}/turns/{turns[0].id}").json()
    assert one == first["turns"][0]

    memory.forget([body.pk], by=alice.pk)
    (source,) = api.get(f"/api/threads/{talk.id}/turns/{turns[0].id}").json()["sources"]
    assert (source["is_forgotten"], source["assistant_message"]) == (True, "")


def test_a_thread_of_another_member_is_readable_but_not_changeable(alice, api):
    bob = PersonFactory(name="Bob Team")
    talk = thread(bob, space=group("Archive", alice, bob))

    assert api.get(f"/api/threads/{talk.id}").json()["who"] == "Bob Team"
    assert error_code(send(api, "patch", f"/threads/{talk.id}", {"title": "Mine"})) == (404, "not_found")
    assert error_code(api.delete(f"/api/threads/{talk.id}")) == (404, "not_found")


def test_a_thread_with_a_running_answer_cannot_be_deleted(alice, api):
    talk = thread(alice)
    turn(talk, state="answering")

    assert error_code(api.delete(f"/api/threads/{talk.id}")) == (409, "refused")
    assert chat.request_stop(talk.turns.get(), by=alice.id)
    assert Thread.objects.get().deleted_at is None


# Records


def test_records_are_stored_found_by_metadata_and_deleted_by_version(memory, alice, api):
    chunks = [
        {"id": "device-fw", "text": "The perimeter firewall drops everything.", "metadata": {"zone": "DMZ", "v": 4}},
        {"id": "device-db", "text": "The payroll database is backed up.", "metadata": {"zone": "LAN", "v": 5}},
    ]
    stored = send(api, "post", "/records", {"records": chunks}).json()["records"]
    assert [row["id"] for row in stored] == ["device-fw", "device-db"]
    send(api, "post", "/exchanges", {"text": "The perimeter firewall, says a note, is a door."})
    memory.index_pending()

    def query(**question: object) -> list[str]:
        found = send(api, "post", "/records/query", {"text": "the firewall at the perimeter"} | question)
        return [row["id"] for row in found.json()["records"]]

    assert query(topK=1) == ["device-fw"]
    assert query(filters={"zone": "LAN"}) == ["device-db"]
    assert query(filters={"v": {"$gte": 5}}) == ["device-db"]
    assert query(prefer={"zone": "LAN"})[0] == "device-db"

    vector = [1.0] + [0.0] * 383
    send(api, "post", "/records", {"records": [chunks[0] | {"vector": vector}]})
    memory.index_pending()
    hits = send(api, "post", "/records/query", {"vector": vector, "topK": 1}).json()["records"]
    assert (hits[0]["id"], round(hits[0]["similarity"], 3)) == ("device-fw", 1.0)

    assert api.delete("/api/records?" + 'filters={"v":{"$lt":5}}').json() == {"deleted": 1}
    assert query() == ["device-db"]
    assert api.delete("/api/records?id=device-db&id=nothing").json() == {"deleted": 1}
    assert error_code(api.delete("/api/records")) == (422, "invalid")
    assert Exchange.objects.findable().count() == 1


def test_in_a_shared_space_a_client_deletes_only_its_persons_records(memory, alice, api):
    ours = group("Archive", alice, bob := PersonFactory(name="Bob Team"))
    of_bob = {"records": [{"id": "b", "text": "Bob's"}], "space": str(ours.pk)}
    assert send(api_client(bob), "post", "/records", of_bob).status_code == 200

    assert api.delete(f"/api/records?id=b&space={ours.pk}").json() == {"deleted": 0}
    assert api_client(bob).delete(f"/api/records?id=b&space={ours.pk}").json() == {"deleted": 1}


def test_a_token_without_read_scope_gets_no_text_by_changing_metadata(memory, alice, api):
    stored = exchange(alice, "The gate code is 4711.", "Noted.")
    path, change = f"/exchanges/{stored.pk}", {"metadata": {"zone": "gate"}}

    blind = send(api_client(alice, "write"), "patch", path, change).json()

    assert (blind["metadata"], blind["user_message"], blind["assistant_message"]) == ({"zone": "gate"}, "", "")
    assert send(api, "patch", path, change).json()["user_message"] == "The gate code is 4711."


def test_a_token_without_read_scope_gets_no_title_by_pinning(alice, api):
    path = f"/threads/{thread(alice, title='The gate code is 4711.').id}"

    blind = send(api_client(alice, "write"), "patch", path, {"is_pinned": True}).json()

    assert (blind["is_pinned"], blind["title"]) == (True, "")
    assert send(api, "patch", path, {"is_pinned": True}).json()["title"] == "The gate code is 4711."


def test_a_token_without_read_scope_gets_no_text_by_changing_a_document(memory, alice, api):
    manual = document(alice, "Gate 4711.md", "# The gate\n\nIt is green.")
    path, change = f"/documents/{manual.pk}", {"metadata": {"zone": "gate"}}
    assert send(api, "patch", path, change).json()["metadata"] == {"zone": "gate"}

    blind = send(api_client(alice, "write"), "patch", path, {"space": "own"}).json()

    assert (blind["id"], blind["name"], blind["newest"]["title"], blind["metadata"]) == (str(manual.pk), "", "", {})
    assert send(api, "patch", path, change).json()["name"] == "Gate 4711.md"


def test_a_token_without_read_scope_gets_no_metadata_by_uploading_the_next_version(memory, alice, api):
    def upload_by(client: Client) -> dict:
        return client.post("/api/documents", {"file": SimpleUploadedFile("gate.txt", b"It is green.")}).json()

    stored = upload_by(api)["document"]
    send(api, "patch", f"/documents/{stored['id']}", {"metadata": {"code": 4711}})
    assert upload_by(api)["document"]["metadata"] == {"code": 4711}

    blind = upload_by(api_client(alice, "write"))["document"]

    assert (blind["id"], blind["name"], blind["newest"]["title"], blind["metadata"]) == (stored["id"], "", "", {})


def test_a_record_of_another_person_in_a_shared_space_cannot_be_replaced(memory, alice, api):
    bob = api_client(PersonFactory(name="Bob Team"))
    in_team = {"space": str(access.team_space().pk)}
    stored = {"records": [{"id": "shared-1", "text": "The gate code is 4711."}]} | in_team
    assert send(api, "post", "/records", stored).status_code == 200

    forged = {"records": [{"id": "mine", "text": "New"}, {"id": "shared-1", "text": "The gate code is 0000."}]}
    refused = send(bob, "post", "/records", forged | in_team)

    assert error_code(refused) == (409, "record_conflict")
    assert "shared-1" in refused.json()["error"]["message"]
    assert "mine" not in refused.json()["error"]["message"]
    (row,) = Exchange.objects.findable()
    assert (row.user_message, row.owner_id, row.version) == ("The gate code is 4711.", alice.pk, 1)
    assert bob.delete(f"/api/records?id=shared-1&space={access.team_space().pk}").json() == {"deleted": 0}
    assert send(bob, "post", "/records", stored).status_code == 409, "the same text does not take it over either"

    assert (
        send(api, "post", "/records", stored | {"records": [{"id": "shared-1", "text": "It is 4712."}]}).status_code
        == 200
    )
    assert api.delete(f"/api/records?id=shared-1&space={access.team_space().pk}").json() == {"deleted": 1}
    assert send(bob, "post", "/records", forged | in_team).status_code == 200, "a deleted record leaves its id free"


def test_one_of_two_people_who_store_the_same_new_id_at_once_succeeds(cato, administrator, bob):
    carol = cato.join(administrator, "Carol Team")
    ids = [f"at-once-{number}-{uuid.uuid4()}" for number in range(8)]
    start = threading.Barrier(2)
    codes: dict[str, list[int]] = {id: [] for id in ids}

    def store_all(sender: httpx.Client) -> None:
        for id in ids:
            start.wait()
            body = {"records": [{"id": id, "text": "Who comes first?"}], "space": "team"}
            codes[id].append(sender.post("/api/records", json=body).status_code)

    senders = [threading.Thread(target=store_all, args=[person.api_client()]) for person in (bob, carol)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()

    assert {id: sorted(of_id) for id, of_id in codes.items()} == {id: [200, 409] for id in ids}


def test_a_document_of_another_person_in_a_shared_space_cannot_be_replaced(memory, alice, api):
    bob = api_client(PersonFactory(name="Bob Team"))
    team = {"space": str(access.team_space().pk), "name": "gate.txt"}

    def upload_by(client: Client, text: str, **more: str):
        file = SimpleUploadedFile("gate.txt", text.encode())
        return client.post("/api/documents", {"file": file} | team | more)

    assert upload_by(api, "The gate code is 4711.").status_code == 202
    assert error_code(upload_by(bob, "The gate code is 0000.")) == (409, "document_conflict")
    assert error_code(upload_by(bob, "The gate code is 4711.", metadata='{"stage":"forged"}')) == (
        409,
        "document_conflict",
    )
    same = upload_by(bob, "The gate code is 4711.")
    assert (same.status_code, same.json()["is_known"]) == (202, True)
    process_documents()

    found = Document.objects.get()
    assert (found.owner_id, found.metadata, found.versions.count()) == (alice.pk, {}, 1)
    assert Exchange.objects.findable().get().user_message == "The gate code is 4711."
    assert upload_by(api, "The gate code is 4712.").status_code == 202


@pytest.mark.parametrize(
    "body",
    [{"records": []}, {"records": [{"id": "", "text": "a"}]}, {"records": [{"id": "a", "text": "a", "vector": [1.0]}]},
     {"records": [{"id": "a", "text": "a"}, {"id": "a\x00", "text": "b"}]}, {"records": [{"id": "a", "text": " "}]}],
)  # fmt: skip
def test_one_invalid_record_refuses_the_batch(memory, api, body):
    assert error_code(send(api, "post", "/records", body)) == (422, "invalid")
    assert not Exchange.objects.exists()


def test_an_unreadable_space_looks_like_a_missing_one(api):
    elsewhere = group("Board", PersonFactory())

    for space_name in (str(elsewhere.pk), str(uuid.uuid4()), "Board", "nowhere"):
        for path, body in (("/exchanges", {"text": "a"}), ("/threads", {}), ("/records/query", {"text": "a"})):
            assert error_code(send(api, "post", path, body | {"space": space_name})) == (404, "not_found"), (
                space_name,
                path,
            )
    assert not Exchange.objects.exists()


# Context, topics and related threads


def test_an_exchange_has_all_fields(memory, alice, api):
    of_alice = thread(alice)
    one = turn(of_alice, "Where is the key?", "Behind the clock.")
    before = exchange(alice, "The key hangs behind the clock.")
    stored = exchange(
        alice,
        one.message,
        one.answer,
        thread_id=of_alice.id,
        session_id=one.session_id,
        turn_id=one.id,
        thread_continuation_seq=2,
        prior_exchange_ids=[before.id],
    )
    found_row = send(api, "get", f"/exchanges/{stored.id}").json()
    assert found_row["prior_exchange_ids"] == [str(before.id)]
    assert found_row["thread_session_id"] == f"{of_alice.id}_{one.session_id}"
    assert found_row["thread_continuation_seq"] == 2
    assert (found_row["manual_entry"], found_row["chunk_index"], found_row["total_chunks"]) == (False, None, None)


def test_context_is_quoted_within_its_budget_and_empty_without_relevant_exchanges(memory, alice, api):
    exchange(alice, "Where does the key of the archive hang?", ARCHIVE)
    memory.index_pending()
    context = send(api, "get", "/context?text=Where+does+the+key+of+the+archive+hang%3F").json()["context"]
    assert ARCHIVE in context
    assert send(api, "get", "/context?text=Thanks!").json() == {"context": ""}
    assert error_code(send(api, "get", "/context?text=key&max_tokens=0")) == (422, "invalid")
    assert send(
        api_client(PersonFactory()), "get", "/context?text=Where+does+the+key+of+the+archive+hang%3F"
    ).json() == {"context": ""}


def test_a_topic_search_is_limited_to_a_thread_or_session(memory, alice, api):
    threads_ = [thread(alice, title=f"Thread {n}") for n in range(2)]
    sessions = []
    for of_alice in threads_:
        one = turn(of_alice, "The key hangs behind the clock.", "Noted.")
        sessions.append(one.session_id)
        exchange(alice, one.message, one.answer, thread_id=of_alice.id, session_id=one.session_id, turn_id=one.id)
    memory.index_pending()

    def found(query: str) -> set[str]:
        return {
            hit["thread_id"] for hit in send(api, "get", f"/threads/{threads_[0].id}/search?{query}").json()["hits"]
        }

    assert found("q=key") == {str(threads_[0].id)}
    assert found(f"q=key&session={sessions[0]}") == {str(threads_[0].id)}
    assert found(f"q=key&session={sessions[1]}") == set()


def test_related_threads_are_readable_threads_on_the_same_subject(memory, alice, api):
    def remember_about(owner, subject: str, answer: str):
        created = thread(owner, title=subject)
        one = turn(created, subject, answer)
        exchange(owner, subject, answer, thread_id=created.id, session_id=one.session_id, turn_id=one.id)
        return created

    current = remember_about(alice, "Where does the key of the archive hang?", ARCHIVE)
    other = remember_about(alice, "Who has the key of the archive?", "Ingrid has the key of the archive.")
    remember_about(alice, "What is the capital of France?", "Paris.")
    remember_about(PersonFactory(), "Where is the key of the archive?", "In the archive.")
    memory.index_pending()

    found = send(api, "get", f"/threads/{current.id}/related").json()["threads"]
    assert [row["thread"]["id"] for row in found] == [str(other.id)]
    page = signed_in(alice)
    html = page.get(f"/t/{current.id}/related").content.decode().split("<main")[1]
    assert "Who has the key of the archive?" in html
    assert "capital of France" not in html
