"""Texts that many people write alike do not hide other vectors of their collection from a query that resembles them."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from memory.index import store, vectors
from tests.factories import PersonFactory, exchange
from tests.test_shared_collections import collection_of, own

pytestmark = pytest.mark.django_db(transaction=True)

COUNT, DIMENSION = 1000, 384


def count_hidden() -> int:
    """Store vectors of as many spaces, half of them identical; return how many spaces a query for the identical one misses."""
    stored = np.random.default_rng(1).normal(size=(COUNT, DIMENSION)).astype(np.float32)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    stored[::2] = query = stored[0]
    ids = [f"{uuid.UUID(int=number)}:whole:1" for number in range(COUNT)]
    stored = vectors.set_apart(ids, stored)
    name = f"identical-{uuid.uuid4().hex[:8]}"
    fields = [{"space": str(number)} for number in range(COUNT)]
    for first in range(0, COUNT, 50):
        part = slice(first, first + 50)
        store.upsert(name, ids[part], stored[part], fields[part])
    hidden = sum(not store.query(name, query, 1, {"space": str(number)}) for number in range(COUNT))
    store.drop(name)
    return hidden


def test_a_query_finds_what_is_stored_beside_hundreds_of_nearly_identical_vectors(memory):
    """If they were not set apart, it would often, but not always, miss a third of the other vectors."""
    assert count_hidden() <= COUNT // 500  # the index is approximate


def test_the_same_text_gets_vectors_that_differ_and_mean_the_same(memory):
    people = PersonFactory.create_batch(2)
    rows = [exchange(person, "Thank you very much", "You are welcome.") for person in people]
    memory.index_pending()
    ids = [id for row in rows for id in vectors.vector_ids(row.id, 1, 1)]

    first, second = store.vectors(collection_of(own(people[0])).name, ids).values()

    assert not np.array_equal(first, second)
    assert float(first @ second / np.linalg.norm(first) / np.linalg.norm(second)) > 0.9999
