"""The vector store contract for programs, point by point, with topology chunks."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from memory.embeddings import local
from memory.errors import InvalidInputError, VectorStoreDisabledError, VectorStoreUnavailableError
from memory.exchanges.records import NewRecord, delete_records, upsert_records
from memory.index import generations, store
from memory.index.indexing import get_record_vectors
from memory.models import EmbeddingJob, Exchange, IndexGeneration, Record
from memory.retrieval.record_search import RecordHit, query_records
from memory.spaces import access
from tests.factories import PersonFactory, exchange

pytestmark = pytest.mark.django_db

DIMENSION = 384
FIREWALL = "The perimeter firewall in front of the mail relay drops everything but port 25."
SERVER = "The mail relay accepts messages from the outside and hands them on."
DATABASE = "The payroll database is backed up every night to tape."


def unit_vector(*, towards: int, and_a_little: int | None = None) -> np.ndarray:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[towards] = 1.0
    if and_a_little is not None:
        vector[and_a_little] = 0.5
    return vector


def topology_chunk(id: str, text: str = SERVER, *, vector: Any = None, **metadata: Any) -> NewRecord:
    """Return a topology chunk with every field of the contract's schema."""
    fields = {
        "controlIdHints": ["AC-2", "AC"],
        "zone": "LAN",
        "deviceType": "server",
        "riskLevel": "Moderate",
        "topologyVersion": 5,
    }
    return NewRecord(id=id, text=text, metadata=fields | metadata, vector=vector)


@pytest.fixture
def upsert(memory, person):
    """Return a function that upserts into the person's personal space and embeds."""

    def upsert_now(*records: NewRecord) -> list[Any]:
        ids = upsert_records(records, space=access.personal_space(person.id), owner_id=person.id)
        memory.index_pending()
        return ids

    return upsert_now


@pytest.fixture
def query(person):
    def query_now(**filters: Any) -> list[RecordHit]:
        return query_records(spaces=access.readable_space_ids(person.id), **filters)

    return query_now


def names(hits: list[RecordHit]) -> list[str]:
    return [hit.id for hit in hits]


@pytest.fixture
def unavailable_index(monkeypatch):
    """Make the vector store unavailable."""

    def down(*args: object, **kwargs: object) -> None:
        raise VectorStoreUnavailableError

    monkeypatch.setattr(store, "query", down)


# Schema


def test_every_field_of_the_schema_is_returned_unchanged(upsert, query):
    record = topology_chunk(
        "device-fw-1", FIREWALL, zone="DMZ", deviceType="firewall", riskLevel="High", topologyVersion=1.7e12
    )
    (exchange_id,) = upsert(record)

    (hit,) = query(text="perimeter firewall")

    assert (hit.id, hit.exchange_id, hit.text) == ("device-fw-1", exchange_id, FIREWALL)
    assert hit.metadata == record.metadata
    with pytest.raises(FrozenInstanceError):
        hit.text = "other"  # type: ignore[misc]


# Operation 1: upsert


def test_a_given_vector_replaces_the_embedding(memory, upsert, query, monkeypatch):
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", lambda *a: pytest.fail("embedded all the same"))

    upsert(
        topology_chunk("device-1", vector=3 * unit_vector(towards=0)),
        topology_chunk("device-2", vector=unit_vector(towards=1)),
    )

    (first, second) = query(vector=unit_vector(towards=0))
    assert names([first, second]) == ["device-1", "device-2"]
    assert first.similarity == pytest.approx(1.0, abs=1e-3)
    assert second.similarity == pytest.approx(0.0, abs=1e-3)


def test_given_vectors_are_stored_normalised_for_their_index(memory, person):
    (id,) = upsert_records(
        [topology_chunk("device-1", vector=[3.0] + [0.0] * (DIMENSION - 1))],
        space=access.personal_space(person.id),
        owner_id=person.id,
    )
    generation = generations.active_generation()

    assert get_record_vectors([id], generation)[id].tolist() == [unit_vector(towards=0).tolist()]
    another = IndexGeneration.objects.create(provider="openai", model="other", state=IndexGeneration.State.BUILDING)
    assert get_record_vectors([id], another) == {}


def test_a_repeated_id_replaces_text_metadata_and_vector_of_the_same_exchange(memory, upsert, query):
    (before,) = upsert(topology_chunk("device-1", SERVER, zone="DMZ"))
    version = Exchange.objects.get(pk=before).version

    (after,) = upsert(topology_chunk("device-1", DATABASE, zone="LAN"))

    assert after == before
    assert Exchange.objects.get(pk=after).version > version
    assert Record.objects.count() == 1
    (hit,) = query(text="payroll backup")
    assert (hit.text, hit.metadata["zone"]) == (DATABASE, "LAN")
    assert query(text="mail relay", filters={"zone": "DMZ"}) == []


def test_changed_metadata_raises_the_version_and_reaches_the_index(memory, upsert):
    (id,) = upsert(topology_chunk("device-1", zone="DMZ", extra="x"))
    upsert(NewRecord("device-1", SERVER, {"zone": "LAN"}))

    row = EmbeddingJob.objects.select_related("collection", "exchange").get()
    assert (row.exchange_id, row.exchange.version, row.version) == (id, 2, 2)
    assert row.exchange.metadata == {"zone": "LAN"}
    assert list(row.exchange.metadata_values.values_list("key", "text")) == [("zone", "LAN")]


def test_an_identical_upsert_does_nothing(memory, person, upsert):
    upsert(topology_chunk("device-1"), topology_chunk("device-2", vector=unit_vector(towards=1)))

    upsert_records(
        [topology_chunk("device-1"), topology_chunk("device-2", vector=unit_vector(towards=1))],
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
        (NewRecord("device-1", SERVER), "device-1 occurs twice"),
        (NewRecord("device-2", SERVER, {"zone": None}), "zone is something else"),
        (NewRecord("device-2", SERVER, vector=[1.0, 2.0]), "vectors of 384 numbers .*, not 2"),
        (NewRecord("device-2", SERVER, vector=[0.0] * DIMENSION), "not all zero"),
        (NewRecord("device-2", SERVER, vector=[float("nan")] * DIMENSION), "finite numbers"),
        (NewRecord("device-2", SERVER, vector=["a"] * DIMENSION), "list of numbers"),
    ],
)
def test_one_invalid_record_refuses_the_batch(memory, person, bad, message):
    with pytest.raises(InvalidInputError, match=message):
        upsert_records([topology_chunk("device-1"), bad], space=access.personal_space(person.id), owner_id=person.id)

    assert Record.objects.count() == Exchange.objects.count() == 0


def test_a_short_first_vector_does_not_set_the_dimension(memory, person):
    with pytest.raises(InvalidInputError):
        upsert_records(
            [NewRecord("a", SERVER, vector=[1.0])], space=access.personal_space(person.id), owner_id=person.id
        )

    assert generations.active_generation().dimension in (None, DIMENSION)


# Operation 2: query


def test_the_contracts_query_by_vector(upsert, query):
    upsert(
        topology_chunk("device-1", vector=unit_vector(towards=0), topologyVersion=5),
        topology_chunk("device-2", vector=unit_vector(towards=0, and_a_little=1), topologyVersion=3),
        topology_chunk("device-old", vector=unit_vector(towards=0), topologyVersion=2),
        topology_chunk("device-other", vector=unit_vector(towards=0), controlIdHints=["SC-7"]),
    )
    latest_version = 5

    hits = query(
        vector=unit_vector(towards=0),
        top_k=8,
        filters={"controlIdHints": {"$contains": "AC-2"}, "topologyVersion": {"$gte": latest_version - 2}},
    )

    assert names(hits) == ["device-1", "device-2"]


def test_the_contracts_query_by_text(upsert, query):
    upsert(
        topology_chunk("device-1", SERVER, topologyVersion=4),
        topology_chunk("device-2", SERVER, topologyVersion=3),
        topology_chunk("device-3", SERVER, controlIdHints=["AC-20"]),
    )

    hits = query(
        text="Control AC-2 context for the mail relay",
        top_k=6,
        filters={"controlIdHints": {"$contains": "AC-2"}, "topologyVersion": {"$gte": 5 - 1}},
    )

    assert names(hits) == ["device-1"]


@pytest.mark.parametrize("top_k", [0, 101, -1])
def test_topk_limits_the_hits_from_1_to_100(upsert, query, top_k):
    upsert(*(topology_chunk(f"device-{n}", vector=unit_vector(towards=n)) for n in range(5)))

    assert len(query(vector=unit_vector(towards=0), top_k=2)) == 2
    with pytest.raises(InvalidInputError, match="1 to 100"):
        query(vector=unit_vector(towards=0), top_k=top_k)


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({}, "with a text or a vector"),
        ({"text": " \x00"}, "with a text or a vector"),
        ({"vector": [1.0]}, "vectors of 384 numbers"),
        ({"text": "x", "filters": {"zone": {"$like": "D"}}}, "zone cannot be compared"),
        ({"text": "x", "prefer": {"zone": None}}, "zone is compared with"),
    ],
)
def test_an_invalid_query_explains_what_is_allowed(memory, query, filters, message):
    with pytest.raises(InvalidInputError, match=message):
        query(**filters)


def test_only_records_are_found_not_other_exchanges(memory, person, upsert, query):
    exchange(person, SERVER)
    exchange(person, SERVER, source="api")
    upsert(topology_chunk("device-1", SERVER))

    assert names(query(text="mail relay")) == ["device-1"]


@pytest.mark.parametrize("filters", [None, {"$or": [{"zone": "DMZ"}, {"$not": {"zone": "DMZ"}}]}])
def test_records_of_other_spaces_are_not_found_or_deleted(memory, upsert, person, filters):
    upsert(topology_chunk("device-1", SERVER, zone="DMZ"))
    charlie = PersonFactory()
    readable = access.readable_space_ids(charlie.id)
    filters: Any = filters or {"space": str(access.personal_space(person.id).id)}

    assert query_records(spaces=readable, text="mail relay", filters=filters) == []
    assert query_records(spaces=frozenset(), text="mail relay") == []
    assert delete_records(spaces=readable, by=charlie.id, filters=filters) == 0
    assert delete_records(spaces=readable, by=charlie.id, ids=["device-1"]) == 0
    assert Record.objects.count() == 1


# Operation 3: delete by version


def test_deleting_by_version_when_the_topology_changes(memory, person, upsert, query):
    upsert(topology_chunk("device-1", topologyVersion=4), topology_chunk("device-2", topologyVersion=5))
    readable = access.readable_space_ids(person.id)

    assert delete_records(spaces=readable, by=person.id, filters={"topologyVersion": {"$lt": 5}}) == 1

    assert names(query(text="mail relay")) == ["device-2"]
    assert delete_records(spaces=readable, by=person.id, filters={"topologyVersion": {"$lt": 5}}) == 0


def test_a_deleted_id_stored_again_is_a_new_exchange(memory, person, upsert, query):
    (before,) = upsert(topology_chunk("device-1"))
    assert delete_records(spaces=access.readable_space_ids(person.id), by=person.id, ids=["device-1", "unknown"]) == 1

    (after,) = upsert(topology_chunk("device-1", DATABASE))

    assert after != before
    assert Exchange.objects.get(pk=before).forgotten_at is not None
    assert [hit.exchange_id for hit in query(text="payroll database")] == [after]


def test_an_id_forgotten_elsewhere_is_a_new_exchange(memory, person, upsert):
    (before,) = upsert(topology_chunk("device-1"))
    memory.forget([before], by=person.id)

    (after,) = upsert(topology_chunk("device-1"))

    assert after != before


def test_deleting_requires_a_filter(memory, person, upsert):
    upsert(topology_chunk("device-1"))
    for filters in ({}, {"filters": {}}):
        with pytest.raises(InvalidInputError):
            delete_records(spaces=access.readable_space_ids(person.id), by=person.id, **filters)
    assert delete_records(spaces=access.readable_space_ids(person.id), by=person.id, ids=[]) == 0
    assert Exchange.objects.filter(forgotten_at=None).count() == 1


# Operation 4: cosine


def test_similarity_is_the_cosine_whatever_the_length_of_the_vectors(upsert, query):
    upsert(
        topology_chunk("device-near", vector=0.01 * unit_vector(towards=0, and_a_little=1)),
        topology_chunk("device-far", vector=100 * unit_vector(towards=1)),
    )

    hits = query(vector=7 * unit_vector(towards=0))

    assert names(hits) == ["device-near", "device-far"]
    assert hits[0].similarity == pytest.approx(1 / np.sqrt(1.25), abs=1e-3)


# Filtering strategy


@pytest.mark.parametrize(("control", "found"), [("AC-2", {"device-1"}), ("AC", {"device-1"}), ("A", set())])
def test_controls_are_filtered_by_id_or_family_and_not_by_substring(upsert, query, control, found):
    upsert(topology_chunk("device-1"), topology_chunk("device-2", controlIdHints=["SC-7", "SC"]))

    assert set(names(query(text="mail relay", filters={"controlIdHints": {"$contains": control}}))) == found


def test_zone_filter_with_preference(upsert, query):
    upsert(
        topology_chunk("device-lan", vector=unit_vector(towards=0), zone="LAN"),
        topology_chunk("device-dmz", vector=unit_vector(towards=0, and_a_little=1), zone="DMZ"),
        topology_chunk("device-dmz-old", vector=unit_vector(towards=0), zone="DMZ", topologyVersion=1),
    )

    filters: dict[str, Any] = {"vector": unit_vector(towards=0), "filters": {"topologyVersion": {"$gte": 5}}}

    assert names(query(**filters)) == ["device-lan", "device-dmz"]
    assert names(query(**filters, prefer={"zone": "DMZ"})) == ["device-dmz", "device-lan"]
    assert names(query(**filters, prefer={"zone": "DMZ"}, top_k=1)) == ["device-dmz"]


def test_baseline_filter(upsert, query):
    upsert(
        topology_chunk("device-1", baseline="LOW"),
        topology_chunk("device-2", baseline="MOD"),
        topology_chunk("device-3", baseline="HIGH"),
    )

    hits = query(text="mail relay", filters={"baseline": {"$in": ["LOW", "MOD"]}})

    assert set(names(hits)) == {"device-1", "device-2"}


# Notes


def test_raw_text_is_found_lexically_while_the_index_is_unavailable(upsert, query, unavailable_index):
    upsert(topology_chunk("device-1", FIREWALL), topology_chunk("device-2", DATABASE))

    (hit,) = query(text="perimeter firewall", filters={"zone": "LAN"})

    assert (hit.id, hit.text, hit.similarity) == ("device-1", FIREWALL, None)


def test_a_vector_query_uses_only_filters_while_the_index_is_unavailable(upsert, query, unavailable_index):
    upsert(topology_chunk("device-1", FIREWALL, zone="DMZ"), topology_chunk("device-2", DATABASE))

    hits = query(vector=unit_vector(towards=0), filters={"zone": "DMZ"})

    assert [(hit.id, hit.text, hit.similarity) for hit in hits] == [("device-1", FIREWALL, None)]
    assert query(vector=unit_vector(towards=0)) == []


def test_ids_are_stable_within_their_space(memory, person, upsert):
    (own,) = upsert(topology_chunk("device-1"))
    (team,) = upsert_records([topology_chunk("device-1")], space=access.team_space(), owner_id=person.id)

    assert team != own
    assert upsert(topology_chunk("device-1", DATABASE)) == [own]


def test_a_disabled_store_stores_and_finds_nothing_and_reports_it(memory, person, query, settings):
    settings.CATO = settings.CATO.model_copy(
        update={"vector_store": settings.CATO.vector_store.model_copy(update={"enabled": False})}
    )

    with pytest.raises(VectorStoreDisabledError):
        query(text="mail relay")
    with pytest.raises(VectorStoreDisabledError):
        upsert_records([topology_chunk("device-1")], space=access.personal_space(person.id), owner_id=person.id)
