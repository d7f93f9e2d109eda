"""Programs that come in by token: what they find, keep, change and forget as the person who let them in."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import UTC, datetime

import httpx
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

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
    """JSON there and back."""
    data = None if body is None else json.dumps(body)
    return getattr(client, method)(f"/api{path}", data=data, content_type="application/json")


def code_of(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


# Coming in


def test_without_a_token_or_with_a_wrong_one_nobody_comes_in(alice):
    signed_in = Client()
    signed_in.force_login(alice)

    for client in (Client(), signed_in, Client(headers={"Authorization": "Bearer cato_wrong"})):
        answer = client.get("/api/me")
        assert code_of(answer) == (401, "no_token")
        assert answer["WWW-Authenticate"] == "Bearer"
        assert not answer.cookies


def test_a_token_does_only_what_it_was_made_for(alice):
    reading = api_client(alice, "read")

    assert reading.get("/api/spaces").status_code == 200
    answer = send(reading, "post", "/exchanges", {"text": ARCHIVE})
    assert code_of(answer) == (403, "scope_missing")
    assert '"write"' in answer.json()["error"]["message"]
    assert not Exchange.objects.exists()
    assert code_of(send(reading, "post", "/ask", {"message": "Who has the key?"})) == (403, "scope_missing")
    assert code_of(api_client(alice, "write").get("/api/search", {"q": "key"})) == (403, "scope_missing")


def test_whatever_goes_wrong_is_said_as_json(api):
    for path in ("", "/", "/nothing", "/threads/5", "/exchanges/"):
        assert code_of(api.get(f"/api{path}")) == (404, "not_found"), path
    wrong = api.put("/api/me")
    assert code_of(wrong) == (405, "wrong_method")
    assert wrong["Allow"] == "GET"
    assert code_of(api.post("/api/recall", data="{", content_type="application/json")) == (422, "invalid")
    slip = send(api, "post", "/recall", {"messages": ["hello"], "max_token": 5})
    assert code_of(slip) == (422, "invalid")
    assert "max_token" in slip.json()["error"]["message"]


def test_a_mistake_of_ours_is_said_without_its_details(api, monkeypatch):
    monkeypatch.setattr(access, "list_readable_spaces", lambda person_id: 1 / 0)

    answer = api.get("/api/spaces")

    assert code_of(answer) == (500, "broken")
    assert "division" not in answer.content.decode()


def test_the_spaces_are_those_the_person_reads(alice, api):
    group("Archive", alice)
    group("Board", PersonFactory())

    names = [space["name"] for space in api.get("/api/spaces").json()["spaces"]]

    assert "Archive" in names
    assert "Board" not in names


# Remembering and finding


def test_what_a_program_keeps_is_found_and_recalled(memory, alice, api):
    said = {"user_message": "Where is the key?", "assistant_message": ARCHIVE, "metadata": {"zone": "cellar"}}
    kept = send(api, "post", "/exchanges", said | {"timestamp": "2025-03-01T12:00:00+01:00"})
    assert kept.status_code == 201
    (row,) = kept.json()["exchanges"]
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


def test_search_says_where_words_alone_found(memory, alice, api, monkeypatch):
    exchange(alice, "The key hangs in the cellar.")
    memory.index_pending()
    assert api.get("/api/search", {"q": "key"}).json()["note"] == ""
    monkeypatch.setattr(store, "query", lambda *a: (_ for _ in ()).throw(VectorStoreUnavailableError()))
    found = api.get("/api/search", {"q": "key"}).json()
    assert (found["note"], [hit["similarity"] for hit in found["hits"]]) == ("words", [None])


def test_search_is_narrowed_by_place_source_time_person_and_nearness(memory, alice, api):
    bob = PersonFactory(name="Bob Team")
    ours = group("Archive", alice, bob)
    mine = exchange(alice, "The key hangs in the cellar.", timestamp=datetime(2024, 5, 1, tzinfo=UTC))
    shared = exchange(bob, "The key hangs in the attic.", space=ours, source="import")
    of_thread = exchange(alice, "The key hangs in the tower.", thread_id=thread(alice).id)
    kept = document(alice, "keys.txt", "The key hangs in the garage.")
    memory.index_pending()

    def found(**asked: object) -> set[str]:
        hits = api.get("/api/search", {"q": "where the key hangs", "k": 50, **asked}).json()["hits"]
        return {hit["id"] for hit in hits}

    assert len(found()) == 4
    assert found(space=str(ours.pk)) == found(space="Archive") == {str(shared.pk)}
    assert found(source="import") == {str(shared.pk)}
    assert found(who=str(bob.pk)) == {str(shared.pk)}
    assert found(until="2024-06-01") == {str(mine.pk)}
    assert str(mine.pk) not in found(since="2024-06-01")
    assert found(thread=str(of_thread.thread_id)) == {str(of_thread.pk)}
    assert found(document=str(kept.pk)) == found() - {str(mine.pk), str(shared.pk), str(of_thread.pk)}
    assert found(min_similarity="1") == set()


@pytest.mark.parametrize(
    "asked",
    [{}, {"q": " "}, {"q": "\x00"}, {"q": "a", "k": 0}, {"q": "a", "k": 101}, {"q": "a", "source": "radio"},
     {"q": "a", "since": "yesterday"}, {"q": "a", "since": "0001-01-01T00:00:00+14:00"}, {"q": "a", "who": "Bob"},
     {"q": "a", "min_similarity": "nan"}],
)  # fmt: skip
def test_a_search_that_cannot_be_meant_is_told_what_to_do(api, asked):
    assert code_of(api.get("/api/search", asked)) == (422, "invalid")


def test_a_long_note_is_cut_and_listed_a_page_at_a_time(memory, api):
    kept = send(api, "post", "/exchanges", {"text": LONG, "metadata": {"about": "ferry"}}).json()["exchanges"]
    assert len(kept) > 2
    assert all(row["metadata"] == {"about": "ferry"} for row in kept)

    seen, cursor = [], {}
    while True:
        page = api.get("/api/exchanges", {"limit": 2, "source": "api", **cursor}).json()
        seen += [row["id"] for row in page["exchanges"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}

    assert sorted(seen) == sorted(row["id"] for row in kept)
    assert code_of(api.get("/api/exchanges", {"cursor": "ä"})) == (422, "invalid")


def test_texts_are_cleaned_like_everywhere(api):
    (row,) = send(api, "post", "/exchanges", {"text": "a\x00 key \ud83d\ude00 \ud800"}).json()["exchanges"]

    assert row["user_message"] == "a key 😀 �"


@pytest.mark.parametrize(
    "body",
    [{}, {"text": "a", "user_message": "b"}, {"text": "\x00"}, {"user_message": " "}, {"assistant_message": "b"},
     {"text": "a", "metadata": {"x": {"y": 1}}}, {"text": "a", "metadata": {"n": 10**400}}, {"text": 5},
     {"text": "a", "timestamp": 5}, {"text": "a", "timestamp": "9999-12-31T23:59:59-14:00"}],
)  # fmt: skip
def test_what_cannot_be_remembered_is_refused_whole(api, body):
    assert code_of(send(api, "post", "/exchanges", body)) == (422, "invalid")
    assert not Exchange.objects.exists()


def test_an_exchange_is_described_by_its_owner_and_forgotten_with_a_receipt(memory, alice, api):
    ours = group("Archive", alice, PersonFactory())
    one = exchange(alice, "The key hangs in the cellar.", space=ours)
    other = api_client(next(person for person in ours.members.all() if person != alice))

    described = send(api, "patch", f"/exchanges/{one.pk}", {"metadata": {"zone": "cellar"}})
    assert described.json()["metadata"] == {"zone": "cellar"}
    assert code_of(send(other, "patch", f"/exchanges/{one.pk}", {"metadata": {}})) == (404, "not_found")
    assert code_of(other.delete(f"/api/exchanges/{one.pk}")) == (404, "not_found")
    assert other.get(f"/api/exchanges/{one.pk}").json()["metadata"] == {"zone": "cellar"}

    receipt = api.delete(f"/api/exchanges/{one.pk}").json()

    assert (receipt["exchanges"], receipt["under_way"]) == (1, 1)
    assert code_of(api.get(f"/api/exchanges/{one.pk}")) == (404, "not_found")


def test_with_the_store_disabled_it_is_said(api, settings):
    store = settings.CATO.vector_store.model_copy(update={"enabled": False})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": store})

    assert code_of(send(api, "post", "/exchanges", {"text": ARCHIVE})) == (409, "disabled")
    assert code_of(api.get("/api/search", {"q": "key"})) == (409, "disabled")


# Documents


def test_a_document_is_uploaded_followed_downloaded_and_deleted(memory, api):
    file = SimpleUploadedFile("keys.txt", LONG.encode())
    answer = api.post("/api/documents", {"file": file, "metadata": json.dumps({"zone": "north"})})
    assert answer.status_code == 202
    shown = answer.json()["document"]
    assert (shown["name"], shown["metadata"], shown["newest"]["stage"]) == ("keys.txt", {"zone": "north"}, "received")
    path = f"/documents/{shown['id']}"
    process_documents()

    ready = api.get(f"/api{path}").json()
    assert (ready["serving"], ready["newest"]["stage"]) == (1, "ready")
    assert ready["newest"]["done"] == ready["newest"]["total"] > 1
    assert b"".join(api.get(f"/api{path}/versions/1/original")) == LONG.encode()
    assert [row["id"] for row in api.get("/api/documents").json()["documents"]] == [shown["id"]]

    again = api.post("/api/documents", {"file": SimpleUploadedFile("x", b"Another text."), "name": "keys.txt"}).json()
    assert (again["document"]["id"], again["document"]["newest"]["number"]) == (shown["id"], 2)
    assert api.delete(f"/api{path}/versions/2").status_code == 200
    assert code_of(api.delete(f"/api{path}/versions/2")) == (404, "not_found")
    assert api.get(f"/api{path}").json()["newest"]["number"] == 1

    receipt = api.delete(f"/api{path}").json()
    assert receipt["exchanges"] == ready["newest"]["total"]
    assert code_of(api.get(f"/api{path}")) == (404, "not_found")


def test_a_document_is_described_and_moved(memory, alice, api):
    ours = group("Archive", alice)
    kept = document(alice, "keys.txt", ARCHIVE)

    moved = send(api, "patch", f"/documents/{kept.pk}", {"space": "Archive", "metadata": {"zone": "north"}}).json()

    assert (moved["space_id"], moved["metadata"]) == (str(ours.pk), {"zone": "north"})
    taken = send(api, "patch", f"/documents/{kept.pk}", {"metadata": {"document": "mine"}})
    assert code_of(taken) == (422, "invalid")
    assert code_of(send(api, "patch", f"/documents/{kept.pk}", {"space": "Board"})) == (404, "not_found")


def test_an_upload_that_cannot_be_taken_leaves_nothing(api):
    empty = api.post("/api/documents", {"file": SimpleUploadedFile("a.txt", b"")})
    no_object = api.post("/api/documents", {"file": SimpleUploadedFile("a.txt", b"a"), "metadata": "zone"})
    no_file = api.post("/api/documents", {"name": "a"})

    for answer in (empty, no_object, no_file, send(api, "post", "/documents", {"file": "a"})):
        assert code_of(answer) == (422, "invalid")
    assert not Document.objects.exists()


def test_a_document_of_another_member_is_read_and_not_changed(memory, alice, api):
    ours = group("Archive", alice, bob := PersonFactory(name="Bob Team"))
    of_bob = upload(bob, "bob.txt", ARCHIVE, space=ours).version.document

    assert api.get(f"/api/documents/{of_bob.pk}").status_code == 200
    assert code_of(api.delete(f"/api/documents/{of_bob.pk}")) == (404, "not_found")
    assert code_of(send(api, "patch", f"/documents/{of_bob.pk}", {"metadata": {}})) == (404, "not_found")


# Threads


def test_a_thread_is_begun_changed_and_deleted(alice, api):
    ours = group("Archive", alice)
    begun = send(api, "post", "/threads", {"title": "  Keys\nand locks "})
    assert begun.status_code == 201
    id = begun.json()["id"]
    assert begun.json()["title"] == "Keys and locks"

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
    assert code_of(api.get(f"/api/threads/{id}")) == (404, "not_found")


def test_a_threads_turns_come_a_page_at_a_time_with_their_sources(memory, alice, api):
    talk = thread(alice)
    said = exchange(alice, "Where is the key?", ARCHIVE)
    memory.index_pending()
    turns = [turn(talk, f"Question {n}", "It hangs there [1].") for n in range(3)]
    memory.log_recall(
        turns[0].id, memory.search("where is the key", spaces=access.readable_space_ids(alice.pk)).results
    )

    first = api.get(f"/api/threads/{talk.id}", {"limit": 2}).json()
    rest = api.get(f"/api/threads/{talk.id}", {"limit": 2, "after": first["next"]}).json()

    assert [row["message"] for row in first["turns"] + rest["turns"]] == ["Question 0", "Question 1", "Question 2"]
    assert rest["next"] is None
    (source,) = first["turns"][0]["sources"]
    assert (source["exchange_id"], source["number"], source["is_cited"]) == (str(said.pk), 1, True)
    assert first["turns"][1]["sources"] == []
    one = api.get(f"/api/threads/{talk.id}/turns/{turns[0].id}").json()
    assert one == first["turns"][0]

    memory.forget([said.pk], by=alice.pk)
    (source,) = api.get(f"/api/threads/{talk.id}/turns/{turns[0].id}").json()["sources"]
    assert (source["is_forgotten"], source["assistant_message"]) == (True, "")


def test_a_thread_of_another_member_is_read_and_not_changed(alice, api):
    bob = PersonFactory(name="Bob Team")
    talk = thread(bob, space=group("Archive", alice, bob))

    assert api.get(f"/api/threads/{talk.id}").json()["who"] == "Bob Team"
    assert code_of(send(api, "patch", f"/threads/{talk.id}", {"title": "Mine"})) == (404, "not_found")
    assert code_of(api.delete(f"/api/threads/{talk.id}")) == (404, "not_found")


def test_a_thread_that_is_being_answered_is_not_deleted_under_it(alice, api):
    talk = thread(alice)
    turn(talk, state="answering")

    assert code_of(api.delete(f"/api/threads/{talk.id}")) == (409, "refused")
    assert chat.request_stop(talk.turns.get())
    assert Thread.objects.get().deleted_at is None


# Records


def test_records_are_kept_found_by_metadata_and_deleted_by_version(memory, alice, api):
    chunks = [
        {"id": "device-fw", "text": "The perimeter firewall drops everything.", "metadata": {"zone": "DMZ", "v": 4}},
        {"id": "device-db", "text": "The payroll database is backed up.", "metadata": {"zone": "LAN", "v": 5}},
    ]
    kept = send(api, "post", "/records", {"records": chunks}).json()["records"]
    assert [row["id"] for row in kept] == ["device-fw", "device-db"]
    send(api, "post", "/exchanges", {"text": "The perimeter firewall, says a note, is a door."})
    memory.index_pending()

    def asked(**question: object) -> list[str]:
        found = send(api, "post", "/records/query", {"text": "the firewall at the perimeter"} | question)
        return [row["id"] for row in found.json()["records"]]

    assert asked(topK=1) == ["device-fw"]
    assert asked(filters={"zone": "LAN"}) == ["device-db"]
    assert asked(filters={"v": {"$gte": 5}}) == ["device-db"]
    assert asked(prefer={"zone": "LAN"})[0] == "device-db"

    vector = [1.0] + [0.0] * 383
    send(api, "post", "/records", {"records": [chunks[0] | {"vector": vector}]})
    memory.index_pending()
    hits = send(api, "post", "/records/query", {"vector": vector, "topK": 1}).json()["records"]
    assert (hits[0]["id"], round(hits[0]["similarity"], 3)) == ("device-fw", 1.0)

    assert api.delete("/api/records?" + 'filters={"v":{"$lt":5}}').json() == {"deleted": 1}
    assert asked() == ["device-db"]
    assert api.delete("/api/records?id=device-db&id=nothing").json() == {"deleted": 1}
    assert code_of(api.delete("/api/records")) == (422, "invalid")
    assert Exchange.objects.findable().count() == 1


def test_in_a_shared_space_a_program_deletes_the_records_of_its_person_alone(memory, alice, api):
    ours = group("Archive", alice, bob := PersonFactory(name="Bob Team"))
    of_bob = {"records": [{"id": "b", "text": "Bob's"}], "space": str(ours.pk)}
    assert send(api_client(bob), "post", "/records", of_bob).status_code == 200

    assert api.delete(f"/api/records?id=b&space={ours.pk}").json() == {"deleted": 0}
    assert api_client(bob).delete(f"/api/records?id=b&space={ours.pk}").json() == {"deleted": 1}


def test_a_token_that_may_not_read_gets_no_text_by_changing_metadata(memory, alice, api):
    kept = exchange(alice, "The gate code is 4711.", "Noted.")
    path, change = f"/exchanges/{kept.pk}", {"metadata": {"zone": "gate"}}

    blind = send(api_client(alice, "write"), "patch", path, change).json()

    assert (blind["metadata"], blind["user_message"], blind["assistant_message"]) == ({"zone": "gate"}, "", "")
    assert send(api, "patch", path, change).json()["user_message"] == "The gate code is 4711."


def test_nobody_replaces_another_persons_record_in_a_shared_space(memory, alice, api):
    bob = api_client(PersonFactory(name="Bob Team"))
    in_team = {"space": str(access.team_space().pk)}
    kept = {"records": [{"id": "shared-1", "text": "The gate code is 4711."}]} | in_team
    assert send(api, "post", "/records", kept).status_code == 200

    forged = {"records": [{"id": "mine", "text": "New"}, {"id": "shared-1", "text": "The gate code is 0000."}]}
    refused = send(bob, "post", "/records", forged | in_team)

    assert code_of(refused) == (409, "record_conflict")
    assert "shared-1" in refused.json()["error"]["message"]
    assert "mine" not in refused.json()["error"]["message"]
    (row,) = Exchange.objects.findable()
    assert (row.user_message, row.owner_id, row.version) == ("The gate code is 4711.", alice.pk, 1)
    assert bob.delete(f"/api/records?id=shared-1&space={access.team_space().pk}").json() == {"deleted": 0}
    assert send(bob, "post", "/records", kept).status_code == 409, "the same text does not take it over either"

    assert (
        send(api, "post", "/records", kept | {"records": [{"id": "shared-1", "text": "It is 4712."}]}).status_code
        == 200
    )
    assert api.delete(f"/api/records?id=shared-1&space={access.team_space().pk}").json() == {"deleted": 1}
    assert send(bob, "post", "/records", forged | in_team).status_code == 200, "a deleted record leaves its id free"


def test_of_two_people_who_store_the_same_new_id_at_once_one_gets_it(cato, administrator, bob):
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


def test_nobody_replaces_another_persons_document_in_a_shared_space(memory, alice, api):
    bob = api_client(PersonFactory(name="Bob Team"))
    team = {"space": str(access.team_space().pk), "name": "gate.txt"}

    def upload_by(client: Client, text: str, **more: str):
        file = SimpleUploadedFile("gate.txt", text.encode())
        return client.post("/api/documents", {"file": file} | team | more)

    assert upload_by(api, "The gate code is 4711.").status_code == 202
    assert code_of(upload_by(bob, "The gate code is 0000.")) == (409, "document_conflict")
    assert code_of(upload_by(bob, "The gate code is 4711.", metadata='{"stage":"forged"}')) == (
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
def test_records_that_cannot_be_kept_are_refused_together(memory, api, body):
    assert code_of(send(api, "post", "/records", body)) == (422, "invalid")
    assert not Exchange.objects.exists()


def test_a_space_that_is_not_theirs_is_as_if_it_were_not_there(api):
    elsewhere = group("Board", PersonFactory())

    for named in (str(elsewhere.pk), str(uuid.uuid4()), "Board", "nowhere"):
        for path, body in (("/exchanges", {"text": "a"}), ("/threads", {}), ("/records/query", {"text": "a"})):
            assert code_of(send(api, "post", path, body | {"space": named})) == (404, "not_found"), (named, path)
    assert not Exchange.objects.exists()


# What memory knows of threads and texts


def test_an_exchange_has_all_its_fields(memory, alice, api):
    of_alice = thread(alice)
    one = turn(of_alice, "Where is the key?", "Behind the clock.")
    before = exchange(alice, "The key hangs behind the clock.")
    kept = exchange(
        alice,
        one.message,
        one.answer,
        thread_id=of_alice.id,
        session_id=one.session_id,
        turn_id=one.id,
        thread_continuation_seq=2,
        prior_exchange_ids=[before.id],
    )
    shown = send(api, "get", f"/exchanges/{kept.id}").json()
    assert shown["prior_exchange_ids"] == [str(before.id)]
    assert shown["thread_session_id"] == f"{of_alice.id}_{one.session_id}"
    assert shown["thread_continuation_seq"] == 2
    assert (shown["manual_entry"], shown["chunk_index"], shown["total_chunks"]) == (False, None, None)


def test_context_for_a_text_is_quoted_within_its_budget_and_empty_where_nothing_fits(memory, alice, api):
    exchange(alice, "Where does the key of the archive hang?", ARCHIVE)
    memory.index_pending()
    context = send(api, "get", "/context?text=Where+does+the+key+of+the+archive+hang%3F").json()["context"]
    assert ARCHIVE in context
    assert send(api, "get", "/context?text=Thanks!").json() == {"context": ""}
    assert code_of(send(api, "get", "/context?text=key&max_tokens=0")) == (422, "invalid")
    assert send(
        api_client(PersonFactory()), "get", "/context?text=Where+does+the+key+of+the+archive+hang%3F"
    ).json() == {"context": ""}


def test_a_topic_is_looked_for_in_one_thread_or_session_alone(memory, alice, api):
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


def test_related_threads_are_those_about_the_same_subject_that_one_may_read(memory, alice, api):
    def about(owner, subject: str, answer: str):
        begun = thread(owner, title=subject)
        one = turn(begun, subject, answer)
        exchange(owner, subject, answer, thread_id=begun.id, session_id=one.session_id, turn_id=one.id)
        return begun

    this = about(alice, "Where does the key of the archive hang?", ARCHIVE)
    other = about(alice, "Who has the key of the archive?", "Ingrid has the key of the archive.")
    about(alice, "What is the capital of France?", "Paris.")
    about(PersonFactory(), "Where is the key of the archive?", "In the archive.")
    memory.index_pending()

    found = send(api, "get", f"/threads/{this.id}/related").json()["threads"]
    assert [row["thread"]["id"] for row in found] == [str(other.id)]
    page = Client()
    page.force_login(alice)
    html = page.get(f"/t/{this.id}/related").content.decode().split("<main")[1]
    assert "Who has the key of the archive?" in html
    assert "capital of France" not in html
