"""The vector store contract, point by point, as a program that keeps topology chunks here meets it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from memory.embeddings import local
from memory.errors import InvalidInputError, VectorStoreDisabledError, VectorStoreUnavailableError
from memory.exchanges.records import NewRecord, RecordHit, delete_records, query_records, upsert_records
from memory.index import generations, store
from memory.index.indexing import vectors_given
from memory.models import EmbeddingJob, Exchange, IndexGeneration, Record
from memory.spaces import access
from tests.factories import PersonFactory, exchange

pytestmark = pytest.mark.django_db

DIMENSION = 384
FIREWALL = "The perimeter firewall in front of the mail relay drops everything but port 25."
SERVER = "The mail relay accepts messages from the outside and hands them on."
DATABASE = "The payroll database is backed up every night to tape."


def pointing(*, towards: int, and_a_little: int | None = None) -> np.ndarray:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[towards] = 1.0
    if and_a_little is not None:
        vector[and_a_little] = 0.5
    return vector


def chunk(id: str, text: str = SERVER, *, vector: Any = None, **metadata: Any) -> NewRecord:
    """A topology chunk with every field of the contract's schema."""
    fields = {
        "controlIdHints": ["AC-2", "AC"],
        "zone": "LAN",
        "deviceType": "server",
        "riskLevel": "Moderate",
        "topologyVersion": 5,
    }
    return NewRecord(id=id, text=text, metadata=fields | metadata, vector=vector)


@pytest.fixture
def keep(memory, person):
    """Upsert into the person's own space, and embed."""

    def keep_now(*records: NewRecord) -> list[Any]:
        ids = upsert_records(records, space=access.personal_space(person.id), owner_id=person.id)
        memory.index_pending()
        return ids

    return keep_now


@pytest.fixture
def ask(person):
    def ask_now(**asked: Any) -> list[RecordHit]:
        return query_records(spaces=access.readable_space_ids(person.id), **asked)

    return ask_now


def names(hits: list[RecordHit]) -> list[str]:
    return [hit.id for hit in hits]


@pytest.fixture
def no_index(monkeypatch):
    """The server that holds the vectors does not answer."""

    def down(*args: object, **kwargs: object) -> None:
        raise VectorStoreUnavailableError

    monkeypatch.setattr(store, "query", down)


# Schema


def test_every_field_of_the_schema_comes_back_as_it_was_given(keep, ask):
    given = chunk("device-fw-1", FIREWALL, zone="DMZ", deviceType="firewall", riskLevel="High", topologyVersion=1.7e12)
    (exchange_id,) = keep(given)

    (hit,) = ask(text="perimeter firewall")

    assert (hit.id, hit.exchange_id, hit.text) == ("device-fw-1", exchange_id, FIREWALL)
    assert hit.metadata == given.metadata
    with pytest.raises(FrozenInstanceError):
        hit.text = "other"  # type: ignore[misc]


# Operation 1: upsert


def test_a_vector_of_its_own_is_used_instead_of_an_embedding(memory, keep, ask, monkeypatch):
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", lambda *a: pytest.fail("embedded all the same"))

    keep(chunk("device-1", vector=3 * pointing(towards=0)), chunk("device-2", vector=pointing(towards=1)))

    (first, second) = ask(vector=pointing(towards=0))
    assert names([first, second]) == ["device-1", "device-2"]
    assert first.similarity == pytest.approx(1.0, abs=1e-5)
    assert second.similarity == pytest.approx(0.0, abs=1e-5)


def test_vectors_given_are_kept_normalised_and_for_the_index_they_were_meant_for(memory, person):
    (id,) = upsert_records(
        [chunk("device-1", vector=[3.0] + [0.0] * (DIMENSION - 1))],
        space=access.personal_space(person.id),
        owner_id=person.id,
    )
    generation = generations.active_generation()

    assert vectors_given([id], generation)[id].tolist() == [pointing(towards=0).tolist()]
    another = IndexGeneration.objects.create(provider="openai", model="other", state=IndexGeneration.State.BUILDING)
    assert vectors_given([id], another) == {}


def test_the_same_id_again_replaces_text_metadata_and_vector_and_stays_the_same_exchange(memory, keep, ask):
    (before,) = keep(chunk("device-1", SERVER, zone="DMZ"))
    version = Exchange.objects.get(pk=before).version

    (after,) = keep(chunk("device-1", DATABASE, zone="LAN"))

    assert after == before
    assert Exchange.objects.get(pk=after).version > version
    assert Record.objects.count() == 1
    (hit,) = ask(text="payroll backup")
    assert (hit.text, hit.metadata["zone"]) == (DATABASE, "LAN")
    assert ask(text="mail relay", filters={"zone": "DMZ"}) == []


def test_metadata_alone_that_changes_raises_the_version_and_reaches_the_index(memory, keep):
    (id,) = keep(chunk("device-1", zone="DMZ", extra="x"))
    keep(NewRecord("device-1", SERVER, {"zone": "LAN"}))

    row = EmbeddingJob.objects.select_related("collection", "exchange").get()
    assert (row.exchange_id, row.exchange.version, row.version) == (id, 2, 2)
    assert row.exchange.metadata == {"zone": "LAN"}
    assert list(row.exchange.metadata_values.values_list("key", "text")) == [("zone", "LAN")]


def test_the_same_again_is_no_work(memory, person, keep):
    keep(chunk("device-1"), chunk("device-2", vector=pointing(towards=1)))

    upsert_records(
        [chunk("device-1"), chunk("device-2", vector=pointing(towards=1))],
        space=access.personal_space(person.id),
        owner_id=person.id,
    )

    assert memory.index_pending() == 0
    assert set(Exchange.objects.values_list("version", flat=True)) == {1}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (NewRecord("device-2", "  "), "device-2 has no text"),
        (NewRecord("", SERVER), "1 to 255 characters"),
        (NewRecord("x" * 256, SERVER), "1 to 255 characters"),
        (NewRecord("device-1", SERVER), "device-1 is there twice"),
        (NewRecord("device-2", SERVER, {"zone": None}), "zone is something else"),
        (NewRecord("device-2", SERVER, vector=[1.0, 2.0]), "vectors of 384 numbers .*, not 2"),
        (NewRecord("device-2", SERVER, vector=[0.0] * DIMENSION), "not all zero"),
        (NewRecord("device-2", SERVER, vector=[float("nan")] * DIMENSION), "finite numbers"),
        (NewRecord("device-2", SERVER, vector=["a"] * DIMENSION), "list of numbers"),
    ],
)
def test_one_bad_record_among_good_ones_and_nothing_is_kept(memory, person, bad, message):
    with pytest.raises(InvalidInputError, match=message):
        upsert_records([chunk("device-1"), bad], space=access.personal_space(person.id), owner_id=person.id)

    assert Record.objects.count() == Exchange.objects.count() == 0


def test_a_short_vector_that_comes_first_does_not_set_the_length_for_all(memory, person):
    with pytest.raises(InvalidInputError):
        upsert_records(
            [NewRecord("a", SERVER, vector=[1.0])], space=access.personal_space(person.id), owner_id=person.id
        )

    assert generations.active_generation().dimension in (None, DIMENSION)


# Operation 2: query


def test_the_query_of_the_contract_by_vector(keep, ask):
    keep(
        chunk("device-1", vector=pointing(towards=0), topologyVersion=5),
        chunk("device-2", vector=pointing(towards=0, and_a_little=1), topologyVersion=3),
        chunk("device-old", vector=pointing(towards=0), topologyVersion=2),
        chunk("device-other", vector=pointing(towards=0), controlIdHints=["SC-7"]),
    )
    latest_version = 5

    hits = ask(
        vector=pointing(towards=0),
        top_k=8,
        filters={"controlIdHints": {"$contains": "AC-2"}, "topologyVersion": {"$gte": latest_version - 2}},
    )

    assert names(hits) == ["device-1", "device-2"]


def test_the_query_of_the_contract_by_text(keep, ask):
    keep(
        chunk("device-1", SERVER, topologyVersion=4),
        chunk("device-2", SERVER, topologyVersion=3),
        chunk("device-3", SERVER, controlIdHints=["AC-20"]),
    )

    hits = ask(
        text="Control AC-2 context for the mail relay",
        top_k=6,
        filters={"controlIdHints": {"$contains": "AC-2"}, "topologyVersion": {"$gte": 5 - 1}},
    )

    assert names(hits) == ["device-1"]


@pytest.mark.parametrize("top_k", [0, 101, -1])
def test_as_many_as_asked_for_and_from_1_to_100(keep, ask, top_k):
    keep(*(chunk(f"device-{n}", vector=pointing(towards=n)) for n in range(5)))

    assert len(ask(vector=pointing(towards=0), top_k=2)) == 2
    with pytest.raises(InvalidInputError, match="1 to 100"):
        ask(vector=pointing(towards=0), top_k=top_k)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "with a text or with a vector"),
        ({"text": " \x00"}, "with a text or with a vector"),
        ({"vector": [1.0]}, "vectors of 384 numbers"),
        ({"text": "x", "filters": {"zone": {"$like": "D"}}}, "zone cannot be compared"),
        ({"text": "x", "prefer": {"zone": None}}, "zone is compared with"),
    ],
)
def test_a_query_that_cannot_be_worked_with_says_what_to_do(memory, ask, asked, message):
    with pytest.raises(InvalidInputError, match=message):
        ask(**asked)


def test_only_records_are_found_not_what_people_said(memory, person, keep, ask):
    exchange(person, SERVER)
    exchange(person, SERVER, source="api")
    keep(chunk("device-1", SERVER))

    assert names(ask(text="mail relay")) == ["device-1"]


@pytest.mark.parametrize("filters", [None, {"$or": [{"zone": "DMZ"}, {"$not": {"zone": "DMZ"}}]}])
def test_nobody_finds_or_deletes_records_of_a_space_they_are_not_given(memory, keep, person, filters):
    keep(chunk("device-1", SERVER, zone="DMZ"))
    charlie = PersonFactory()
    readable = access.readable_space_ids(charlie.id)
    asked: Any = filters or {"space": str(access.personal_space(person.id).id)}

    assert query_records(spaces=readable, text="mail relay", filters=asked) == []
    assert query_records(spaces=frozenset(), text="mail relay") == []
    assert delete_records(spaces=readable, by=charlie.id, filters=asked) == 0
    assert delete_records(spaces=readable, by=charlie.id, ids=["device-1"]) == 0
    assert Record.objects.count() == 1


# Operation 3: delete by version


def test_deleting_by_version_when_the_topology_changes(memory, person, keep, ask):
    keep(chunk("device-1", topologyVersion=4), chunk("device-2", topologyVersion=5))
    readable = access.readable_space_ids(person.id)

    assert delete_records(spaces=readable, by=person.id, filters={"topologyVersion": {"$lt": 5}}) == 1

    assert names(ask(text="mail relay")) == ["device-2"]
    assert delete_records(spaces=readable, by=person.id, filters={"topologyVersion": {"$lt": 5}}) == 0


def test_a_record_deleted_and_brought_again_is_a_new_exchange(memory, person, keep, ask):
    (before,) = keep(chunk("device-1"))
    assert delete_records(spaces=access.readable_space_ids(person.id), by=person.id, ids=["device-1", "unknown"]) == 1

    (after,) = keep(chunk("device-1", DATABASE))

    assert after != before
    assert Exchange.objects.get(pk=before).forgotten_at is not None
    assert [hit.exchange_id for hit in ask(text="payroll database")] == [after]


def test_a_record_forgotten_elsewhere_is_a_new_exchange_too(memory, person, keep):
    (before,) = keep(chunk("device-1"))
    memory.forget([before], by=person.id)

    (after,) = keep(chunk("device-1"))

    assert after != before


def test_nothing_is_deleted_by_omission(memory, person, keep):
    keep(chunk("device-1"))
    for asked in ({}, {"filters": {}}):
        with pytest.raises(InvalidInputError):
            delete_records(spaces=access.readable_space_ids(person.id), by=person.id, **asked)
    assert delete_records(spaces=access.readable_space_ids(person.id), by=person.id, ids=[]) == 0
    assert Exchange.objects.filter(forgotten_at=None).count() == 1


# Operation 4: cosine


def test_similarity_is_the_cosine_whatever_the_length_of_the_vectors(keep, ask):
    keep(
        chunk("device-near", vector=0.01 * pointing(towards=0, and_a_little=1)),
        chunk("device-far", vector=100 * pointing(towards=1)),
    )

    hits = ask(vector=7 * pointing(towards=0))

    assert names(hits) == ["device-near", "device-far"]
    assert hits[0].similarity == pytest.approx(1 / np.sqrt(1.25), abs=1e-4)


# Filtering strategy


@pytest.mark.parametrize(("control", "found"), [("AC-2", {"device-1"}), ("AC", {"device-1"}), ("A", set())])
def test_control_filter_by_id_or_family_never_by_a_part_of_it(keep, ask, control, found):
    keep(chunk("device-1"), chunk("device-2", controlIdHints=["SC-7", "SC"]))

    assert set(names(ask(text="mail relay", filters={"controlIdHints": {"$contains": control}}))) == found


def test_zone_first_and_the_others_after(keep, ask):
    keep(
        chunk("device-lan", vector=pointing(towards=0), zone="LAN"),
        chunk("device-dmz", vector=pointing(towards=0, and_a_little=1), zone="DMZ"),
        chunk("device-dmz-old", vector=pointing(towards=0), zone="DMZ", topologyVersion=1),
    )

    asked: dict[str, Any] = {"vector": pointing(towards=0), "filters": {"topologyVersion": {"$gte": 5}}}

    assert names(ask(**asked)) == ["device-lan", "device-dmz"]
    assert names(ask(**asked, prefer={"zone": "DMZ"})) == ["device-dmz", "device-lan"]
    assert names(ask(**asked, prefer={"zone": "DMZ"}, top_k=1)) == ["device-dmz"]


def test_baseline_filter(keep, ask):
    keep(chunk("device-1", baseline="LOW"), chunk("device-2", baseline="MOD"), chunk("device-3", baseline="HIGH"))

    hits = ask(text="mail relay", filters={"baseline": {"$in": ["LOW", "MOD"]}})

    assert set(names(hits)) == {"device-1", "device-2"}


# Notes


def test_the_raw_text_is_found_by_words_while_the_index_is_down(keep, ask, no_index):
    keep(chunk("device-1", FIREWALL), chunk("device-2", DATABASE))

    (hit,) = ask(text="perimeter firewall", filters={"zone": "LAN"})

    assert (hit.id, hit.text, hit.similarity) == ("device-1", FIREWALL, None)


def test_a_vector_finds_by_filters_alone_while_the_index_is_down(keep, ask, no_index):
    keep(chunk("device-1", FIREWALL, zone="DMZ"), chunk("device-2", DATABASE))

    hits = ask(vector=pointing(towards=0), filters={"zone": "DMZ"})

    assert [(hit.id, hit.text, hit.similarity) for hit in hits] == [("device-1", FIREWALL, None)]
    assert ask(vector=pointing(towards=0)) == []


def test_ids_are_stable_and_belong_to_their_space(memory, person, keep):
    (mine,) = keep(chunk("device-1"))
    (team,) = upsert_records([chunk("device-1")], space=access.team_space(), owner_id=person.id)

    assert team != mine
    assert keep(chunk("device-1", DATABASE)) == [mine]


def test_a_disabled_store_keeps_and_finds_nothing_and_says_so(memory, person, ask, settings):
    settings.CATO = settings.CATO.model_copy(
        update={"vector_store": settings.CATO.vector_store.model_copy(update={"enabled": False})}
    )

    with pytest.raises(VectorStoreDisabledError):
        ask(text="mail relay")
    with pytest.raises(VectorStoreDisabledError):
        upsert_records([chunk("device-1")], space=access.personal_space(person.id), owner_id=person.id)
