"""Metadata filters: database, index and a reference implementation agree on every filter."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.errors import InvalidInputError
from memory.exchanges.metadata import save_metadata_values, validate_metadata
from memory.filters import chroma_fields, parse_filter, to_chroma, to_sql
from memory.filters.selectivity import ids_if_selective
from memory.index import chroma, store
from memory.models import Exchange, MetadataValue, Space
from memory.spaces import access
from tests.factories import PersonFactory

pytestmark = pytest.mark.django_db

COLLECTION = "filters-agree"
KEYS = ("zone", "hints", "version", "source", "metadata.zone", "a key, of $ many . words")
TEXTS = ("DMZ", "dmz", "DM", "3", "true", "", "%", "zürich 中文")
NUMBERS = (3, 3.0, 4.5, -1, 0, 2**53, 0.1)
SCALARS = (*TEXTS, *NUMBERS, True, False)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PEOPLE = 2


@dataclass(frozen=True)
class Dataset:
    """Thirty exchanges of two people, in the database and in one collection."""

    rows: list[Exchange]
    threads: tuple[uuid.UUID, ...]

    def ids(self, picked: list[Exchange]) -> set[str]:
        return {str(row.id) for row in picked}


def random_filter(dice: random.Random) -> Any:
    of_one_type = dice.choice([TEXTS, NUMBERS, (True, False)])
    as_list = [dice.choice(of_one_type) for _ in range(dice.randrange(4))]
    return dice.choice([dice.choice(SCALARS), as_list])


@pytest.fixture(scope="module")
def dataset(chroma: None, django_db_setup: None, django_db_blocker: Any) -> Iterator[Dataset]:
    dice = random.Random(11)
    with django_db_blocker.unblock():
        people = [PersonFactory() for _ in range(PEOPLE)]
        threads = tuple(uuid.UUID(int=n) for n in (1, 2))
        rows = [
            Exchange(
                space=access.personal_space(people[number % PEOPLE].id),
                owner=people[number % PEOPLE],
                user_message="random_filter",
                size=8,
                timestamp=START + timedelta(microseconds=number // 3),
                source=dice.choice(["chat", "api", "upload"]),
                thread_id=dice.choice([None, *threads]),
                session_id=dice.choice([None, *threads]),
                source_file=dice.choice(["", "plan.pdf"]),
                manual_entry=dice.choice([True, False]),
                metadata=validate_metadata({key: random_filter(dice) for key in KEYS if dice.random() < 0.6}),
            )
            for number in range(30)
        ]
        Exchange.objects.bulk_create(rows)
        save_metadata_values(rows)
        store.upsert(
            COLLECTION,
            [str(row.id) for row in rows],
            np.eye(len(rows), 32, dtype=np.float32) + 0.1,
            [chroma_fields(row, row.metadata) for row in rows],
        )
        yield Dataset(rows, threads)
        store.drop(COLLECTION)
        Exchange.objects.all().delete()
        Space.objects.all().delete()
        for person in people:
            person.delete()


def ids_in_sql(filters: Mapping[str, Any]) -> set[str]:
    return {str(i) for i in Exchange.objects.filter(to_sql(parse_filter(filters))).values_list("id", flat=True)}


def ids_in_index(filters: Mapping[str, Any]) -> set[str] | None:
    condition = to_chroma(parse_filter(filters))
    if condition is None:
        return None
    return set(chroma.run(COLLECTION, lambda handle: handle.get(where=condition, include=[]))["ids"])


def matches(filters: Mapping[str, Any], row: Exchange) -> bool:
    """Evaluate the filter on one exchange, as the reference implementation."""
    return all(matches_field(name, value, row) for name, value in filters.items())


def matches_field(name: str, value: Any, row: Exchange) -> bool:
    if name == "$and":
        return all(matches(part, row) for part in value)
    if name == "$or":
        return any(matches(part, row) for part in value)
    if name == "$not":
        return not matches(value, row)
    own = {
        "source": row.source,
        "said": row.timestamp,
        "said_by": row.owner_id,
        "thread": row.thread_id,
        "session": row.session_id,
        "space": row.space_id,
        "source_file": row.source_file,
        "manual_entry": row.manual_entry,
    }
    stored_value = own[name] if name in own else row.metadata.get(name.removeprefix("metadata."))
    if isinstance(stored_value, datetime):
        value = {operator: datetime.fromisoformat(moment) for operator, moment in value.items()}
    if isinstance(stored_value, uuid.UUID):
        value = ids_in(value)
    if not isinstance(value, Mapping):
        return are_equal(stored_value, value)
    return all(compare(stored_value, operator, operand) for operator, operand in value.items())


def ids_in(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {operator: [ids_in(each) for each in members] for operator, members in value.items()}
    return value if isinstance(value, uuid.UUID) else uuid.UUID(value)


def compare(value: Any, operator: str, operand: Any) -> bool:
    if operator == "$in":
        return any(are_equal(value, each) for each in operand)
    if operator == "$contains":
        return isinstance(value, list) and any(are_equal(each, operand) for each in value)
    if isinstance(value, bool | str | list) or value is None:
        return False
    return {"$gt": value > operand, "$gte": value >= operand, "$lt": value < operand, "$lte": value <= operand}[
        operator
    ]


def are_equal(one: Any, other_value: Any) -> bool:
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other_value))
    return (numbers or type(one) is type(other_value)) and one == other_value


def filters_on(dataset: Dataset) -> st.SearchStrategy[dict[str, Any]]:
    scalar, number = st.sampled_from(SCALARS), st.sampled_from(NUMBERS)
    some = st.lists(scalar, max_size=4)
    ranges = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), number, min_size=1, max_size=2)
    free = scalar | some.map(lambda v: {"$in": v}) | scalar.map(lambda v: {"$contains": v}) | ranges
    moment = st.integers(-1, 11).map(lambda n: (START + timedelta(microseconds=n)).isoformat())
    times = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), moment, min_size=1, max_size=2)
    thread = st.sampled_from([*dataset.threads, uuid.UUID(int=3)])
    owner = st.sampled_from([row.owner_id for row in dataset.rows[:PEOPLE]])
    own: dict[str, st.SearchStrategy[Any]] = {
        "source": st.sampled_from(["chat", "api", "cli"]) | st.just({"$in": ["api", "upload"]}),
        "said": times,
        "said_by": owner | st.lists(owner).map(lambda v: {"$in": v}),
        "thread": thread,
        "session": thread,
        "space": st.sampled_from([row.space_id for row in dataset.rows[:PEOPLE]]),
        "source_file": st.sampled_from(["", "plan.pdf", "plan"]),
        "manual_entry": st.booleans(),
    }
    keys = [key if key not in own and not key.startswith("metadata.") else f"metadata.{key}" for key in KEYS]
    leaf = st.dictionaries(st.sampled_from(keys), free, min_size=1, max_size=2)
    leaf |= st.sampled_from(sorted(own)).flatmap(lambda name: st.fixed_dictionaries({name: own[name]}))
    tree = leaf
    for _ in range(3):
        several = st.lists(tree, min_size=1, max_size=3)
        joined = (
            several.map(lambda v: {"$and": v}) | several.map(lambda v: {"$or": v}) | tree.map(lambda v: {"$not": v})
        )
        tree = leaf | joined | st.tuples(leaf, joined).map(lambda pair: pair[0] | pair[1])
    return tree


def test_database_index_and_reference_implementation_agree(dataset):
    index_queries = 0

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(filters_on(dataset))
    def check_agreement(filters: dict[str, Any]) -> None:
        nonlocal index_queries
        expected = {str(row.id) for row in dataset.rows if matches(filters, row)}
        assert ids_in_sql(filters) == expected
        found = ids_in_index(filters)
        assert found is None or found == expected
        index_queries += found is not None

    check_agreement()
    assert index_queries >= 20


def test_a_selective_filter_returns_all_matching_ids(dataset):
    selective = 0

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(filters_on(dataset), st.sampled_from([3, 30]))
    def check(filters: dict[str, Any], limit: int) -> None:
        nonlocal selective
        found = ids_if_selective(parse_filter(filters), limit)
        selective += found is not None
        if found is not None:
            assert len(found) <= limit
            assert {str(row.id) for row in dataset.rows if matches(filters, row)} <= set(map(str, found))

    check()
    assert selective >= 10


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(
    "filters",
    [
        {"source": "api"},
        {"said": {"$gt": "2026-03-01T12:00:00.000004Z"}},
        {"said": {"$lte": "2026-03-01T12:00:00.000004Z"}},
        {"thread": "00000000-0000-0000-0000-000000000001"},
        {"session": {"$in": ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"]}},
        {"source_file": "plan.pdf"},
        {"source_file": ""},
        {"manual_entry": True},
        {"manual_entry": {"$in": [True, False]}},
    ],
)
def test_every_field_of_an_exchange_can_be_filtered(dataset, filters, negated):
    filters = {"$not": filters} if negated else filters
    expected = {str(row.id) for row in dataset.rows if matches(filters, row)}

    assert ids_in_sql(filters) == expected
    assert ids_in_index(filters) in (expected, None)


def test_no_filter_reaches_into_another_space(dataset):
    readable = frozenset({dataset.rows[0].space_id})
    readable_ids = {row.id for row in dataset.rows if row.space_id in readable}

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(filters_on(dataset))
    def check(filters: dict[str, Any]) -> None:
        rows = access.in_spaces(Exchange.objects.all(), readable).filter(to_sql(parse_filter(filters)))
        assert set(rows.values_list("id", flat=True)) <= readable_ids

    check()


@pytest.mark.parametrize("shape", ["{other}", "or everything", "not mine", "nothing excluded"])
def test_a_filter_for_another_space_returns_nothing(dataset, shape):
    readable, other_value = frozenset({dataset.rows[0].space_id}), dataset.rows[1].space_id
    by_space: dict[str, Any] = {
        "{other}": {"space": other_value},
        "or everything": {"$or": [{"space": other_value}, {"$not": {"zone": "no such zone"}}]},
        "not mine": {"$not": {"space": dataset.rows[0].space_id}},
        "nothing excluded": {"$not": {"space": {"$in": []}}},
    }[shape]
    assert str(dataset.rows[1].id) in ids_in_sql(by_space), "the filter alone would let it through"

    visible = access.in_spaces(Exchange.objects.all(), readable).filter(to_sql(parse_filter(by_space)))

    assert all(row.space_id in readable for row in visible)


@pytest.fixture
def one(dataset):
    """Return another exchange, with metadata that the tests know."""
    row = Exchange.objects.create(
        space_id=dataset.rows[0].space_id,
        owner_id=dataset.rows[0].owner_id,
        user_message="random_filter",
        size=8,
        timestamp=START,
        source="api",
        metadata=validate_metadata(
            {"zone": "DMZ", "hints": ["AC-2", "AC"], "version": 3, "live": True, "counts": [1, 2.5]}
        ),
    )
    save_metadata_values([row])
    return row


def lets_through(filters: Mapping[str, Any], row: Exchange) -> bool:
    return str(row.id) in ids_in_sql(filters)


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({"zone": "DMZ"}, True),
        ({"zone": "dmz"}, False),
        ({"zone": "DM"}, False),
        ({"zone": "DMZ", "version": 4}, False),
        ({"zone": {"$in": ["LAN", "DMZ"]}}, True),
        ({"zone": {"$in": [3, True, "DMZ"]}}, True),
        ({"zone": {"$in": []}}, False),
        ({"$not": {"zone": {"$in": []}}}, True),
        ({"version": "3"}, False),
        ({"version": 3.0}, True),
        ({"live": 1}, False),
        ({"live": True}, True),
        ({"version": {"$gte": 3, "$lt": 4}}, True),
        ({"version": {"$gt": 3}}, False),
        ({"zone": {"$gt": 3}}, False),
        ({"$not": {"zone": {"$gt": 3}}}, True),
        ({"hints": {"$contains": "AC-2"}}, True),
        ({"hints": {"$contains": "AC-"}}, False),
        ({"zone": {"$contains": "DMZ"}}, False),
        ({"hints": "AC-2"}, False),
        ({"counts": {"$contains": 1.0}}, True),
        ({"counts": {"$gt": 0}}, False),
        ({"$not": {"nowhere": "x"}}, True),
        ({"$not": {"$not": {"nowhere": "x"}}}, False),
        ({"$not": {"zone": "DMZ", "version": 4}}, True),
        ({"$not": {"$or": [{"zone": "LAN"}, {"version": 3}]}}, False),
        ({"metadata.zone": "DMZ"}, True),
        ({"source": "api"}, True),
        ({"metadata.source": "api"}, False),
        ({"said": {"$gte": "2026-03-01"}}, True),
        ({"said": {"$gt": "2026-03-01T13:00:00+01:00"}}, False),
        ({"said": START}, True),
        ({"$not": {"thread": "00000000-0000-0000-0000-000000000001"}}, True),
    ],
)
def test_operators_have_their_documented_meaning(one, filters, matches):
    assert lets_through(filters, one) == matches


def nested_filter(levels: int) -> dict[str, Any]:
    return {"zone": "DMZ"} if levels == 1 else {"$not": nested_filter(levels - 1)}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({}, "at least one condition"),
        ("zone = DMZ", "is a mapping"),
        ({"$and": []}, r"\$and takes a list of filters"),
        ({"$or": {"zone": "DMZ"}}, r"\$or takes a list of filters"),
        ({"$not": []}, "is a mapping"),
        ({"$nor": [{"zone": "DMZ"}]}, r"\$and, \$or or \$not"),
        ({3: "DMZ"}, "3 is neither the name of a field"),
        ({"zone": {}}, "zone has no condition"),
        ({"zone": {"$like": "D%"}}, r"zone cannot be compared with '\$like'; use equality or \$in, \$contains, \$gt"),
        ({"zone": ["DMZ"]}, "zone is compared with texts"),
        ({"zone": None}, "zone is compared with texts"),
        ({"zone": {"$in": "DMZ"}}, r"\$in takes a list of values, zone"),
        ({"zone": {"$in": ["x"] * 1001}}, r"at most 1000 values, zone"),
        ({"version": {"$gte": "3"}}, r"\$gte compares numbers; version"),
        ({"version": {"$lt": True}}, r"\$lt compares numbers; version"),
        ({"version": float("nan")}, "version is compared with"),
        ({"version": 10**400}, "version is compared with"),
        ({"k" * 101: 1}, "1 to 100 characters"),
        ({"metadata.": 1}, "1 to 100 characters"),
        ({"metadata.$x": 1}, "does not begin with"),
        ({"source": "nowhere"}, "source is one of chat.*metadata.source"),
        ({"source": {"$contains": "api"}}, r"source cannot be compared with '\$contains'; use equality or \$in"),
        ({"said": {"$gt": "yesterday"}}, "said is compared with a time such as"),
        ({"said": {"$gt": "0001-01-01T00:00:00+14:00"}}, "said is compared with a time such as"),
        ({"said": 3}, "said is compared with a time such as"),
        ({"thread": "x"}, "thread is compared with an id"),
        ({"space": {"$gt": 1}}, "space cannot be compared with"),
        ({"manual_entry": 1}, "manual_entry is compared with true or false"),
        ({"source_file": 1}, "source_file is compared with a text"),
        (nested_filter(9), "at most 8 levels"),
        ({"$or": [{"zone": "DMZ"}] * 101}, "at most 100 conditions"),
        ({"$or": [{"zone": {"$in": ["x"] * 1000}}] * 11}, "at most 10000 values"),
    ],
)
def test_an_invalid_filter_explains_what_is_allowed(filters, message):
    with pytest.raises(InvalidInputError, match=message):
        parse_filter(filters)


def test_the_largest_allowed_filter_works_in_both_stores(dataset):
    members = [float(n) for n in range(100)]
    widest: dict[str, Any] = {"$or": [{f"key {n}": {"$in": members}} for n in range(99)] + [{"version": 3}]}
    expected = {str(row.id) for row in dataset.rows if are_equal(row.metadata.get("version"), 3)}
    assert expected

    assert ids_in_sql(widest) == expected
    assert ids_in_index(widest) == expected
    assert ids_in_sql({"$not": widest}) == ids_in_index({"$not": widest}) == dataset.ids(dataset.rows) - expected
    assert ids_in_sql(nested_filter(8)) == ids_in_index(nested_filter(8))


def test_filter_texts_are_cleaned_like_metadata(one):
    assert lets_through({"zone": "D\x00MZ"}, one)
    assert lets_through({"zo\x00ne": "DMZ"}, one)


@pytest.mark.parametrize(
    "hostile", ["'; DROP TABLE memory_exchange; --", '"', "key__in", "\\", "%s", "{}", "\ud800", "‮"]
)
def test_hostile_keys_and_values_are_treated_as_data(one, hostile):
    one.metadata = validate_metadata({hostile: hostile})
    save_metadata_values([one])

    assert lets_through({hostile: hostile}, one)
    assert not lets_through({hostile: "another"}, one)


def test_metadata_rows_are_written_in_bulk_and_replaced(one, dataset, django_assert_num_queries):
    one.metadata = {"zone": "LAN"}

    with django_assert_num_queries(2):
        save_metadata_values([one, *dataset.rows[:5]])

    assert list(MetadataValue.objects.filter(exchange=one).values_list("key", "text")) == [("zone", "LAN")]
    assert lets_through({"zone": "LAN"}, one)
    assert not lets_through({"zone": "DMZ"}, one)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([("zone", "DMZ")], "is a mapping"),
        ({"": 1}, "1 to 100 characters"),
        ({"k" * 101: 1}, "1 to 100 characters"),
        ({"$zone": 1}, "does not begin with"),
        ({3: 1}, "1 to 100 characters"),
        ({"a": 1, "a\x00": 2}, "differ in control characters"),
        ({"zone": None}, "zone is something else"),
        ({"zone": {"name": "DMZ"}}, "zone is something else"),
        ({"zone": [["DMZ"]]}, "zone is something else"),
        ({"zone": ["DMZ", 3]}, "zone must all be texts"),
        ({"zone": [True, 1]}, "zone must all be texts"),
        ({"zone": "x" * 501}, "at most 500 characters, zone has 501"),
        ({"zone": ["x"] * 201}, "at most 200 members, zone has 201"),
        ({"zone": float("inf")}, "must be finite, zone"),
        ({"zone": [1.0, float("nan")]}, "must be finite, zone"),
        ({"zone": 10**400}, "must be finite, zone"),
        ({f"key {n}": n for n in range(101)}, "at most 100 keys"),
    ],
)
def test_invalid_metadata_is_refused_with_an_explanation(metadata, message):
    with pytest.raises(InvalidInputError, match=message):
        validate_metadata(metadata)


def test_valid_metadata_is_returned_cleaned_and_otherwise_unchanged():
    raw_metadata = {"zo\x00ne": "a\r\nb", "tags": ("x", "y"), "none": [], "n": [1, 2.5], "live": False, "at": 2**60}

    assert validate_metadata(raw_metadata) == {
        "zone": "a\nb",
        "tags": ["x", "y"],
        "none": [],
        "n": [1, 2.5],
        "live": False,
        "at": 2**60,
    }
