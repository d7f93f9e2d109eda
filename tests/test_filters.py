"""What people and programs may filter by; the database, the index and plain reading agree on what a filter lets through."""

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
from memory.index import store
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
class World:
    """Thirty exchanges of two people, in SQL and in one collection; their ids by what a filter may ask of them."""

    rows: list[Exchange]
    threads: tuple[uuid.UUID, ...]

    def ids(self, picked: list[Exchange]) -> set[str]:
        return {str(row.id) for row in picked}


def anything(dice: random.Random) -> Any:
    of_one_type = dice.choice([TEXTS, NUMBERS, (True, False)])
    as_list = [dice.choice(of_one_type) for _ in range(dice.randrange(4))]
    return dice.choice([dice.choice(SCALARS), as_list])


@pytest.fixture(scope="module")
def world(chroma: None, django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    dice = random.Random(11)
    with django_db_blocker.unblock():
        people = [PersonFactory() for _ in range(PEOPLE)]
        threads = tuple(uuid.UUID(int=n) for n in (1, 2))
        rows = [
            Exchange(
                space=access.personal_space(people[number % PEOPLE].id),
                owner=people[number % PEOPLE],
                user_message="anything",
                size=8,
                timestamp=START + timedelta(microseconds=number // 3),
                source=dice.choice(["chat", "api", "upload"]),
                thread_id=dice.choice([None, *threads]),
                session_id=dice.choice([None, *threads]),
                source_file=dice.choice(["", "plan.pdf"]),
                manual_entry=dice.choice([True, False]),
                metadata=validate_metadata({key: anything(dice) for key in KEYS if dice.random() < 0.6}),
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
        yield World(rows, threads)
        store.drop(COLLECTION)
        Exchange.objects.all().delete()
        Space.objects.all().delete()
        for person in people:
            person.delete()


def in_sql(filters: Mapping[str, Any]) -> set[str]:
    return {str(i) for i in Exchange.objects.filter(to_sql(parse_filter(filters))).values_list("id", flat=True)}


def in_the_index(filters: Mapping[str, Any]) -> set[str] | None:
    where = to_chroma(parse_filter(filters))
    if where is None:
        return None
    return set(store._collection(COLLECTION).get(where=where, include=[])["ids"])


def read_plainly(filters: Mapping[str, Any], row: Exchange) -> bool:
    """What the filter says of one exchange, read word by word."""
    return all(holds(name, value, row) for name, value in filters.items())


def holds(name: str, value: Any, row: Exchange) -> bool:
    if name == "$and":
        return all(read_plainly(part, row) for part in value)
    if name == "$or":
        return any(read_plainly(part, row) for part in value)
    if name == "$not":
        return not read_plainly(value, row)
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
    there = own[name] if name in own else row.metadata.get(name.removeprefix("metadata."))
    if isinstance(there, datetime):
        value = {operator: datetime.fromisoformat(moment) for operator, moment in value.items()}
    if isinstance(there, uuid.UUID):
        value = ids_in(value)
    if not isinstance(value, Mapping):
        return same(there, value)
    return all(compares(there, operator, operand) for operator, operand in value.items())


def ids_in(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {operator: [ids_in(each) for each in members] for operator, members in value.items()}
    return value if isinstance(value, uuid.UUID) else uuid.UUID(value)


def compares(there: Any, operator: str, operand: Any) -> bool:
    if operator == "$in":
        return any(same(there, each) for each in operand)
    if operator == "$contains":
        return isinstance(there, list) and any(same(each, operand) for each in there)
    if isinstance(there, bool | str | list) or there is None:
        return False
    return {"$gt": there > operand, "$gte": there >= operand, "$lt": there < operand, "$lte": there <= operand}[
        operator
    ]


def same(one: Any, other: Any) -> bool:
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other))
    return (numbers or type(one) is type(other)) and one == other


def filters_on(world: World) -> st.SearchStrategy[dict[str, Any]]:
    scalar, number = st.sampled_from(SCALARS), st.sampled_from(NUMBERS)
    some = st.lists(scalar, max_size=4)
    ranges = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), number, min_size=1, max_size=2)
    free = scalar | some.map(lambda v: {"$in": v}) | scalar.map(lambda v: {"$contains": v}) | ranges
    moment = st.integers(-1, 11).map(lambda n: (START + timedelta(microseconds=n)).isoformat())
    times = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), moment, min_size=1, max_size=2)
    thread = st.sampled_from([*world.threads, uuid.UUID(int=3)])
    owner = st.sampled_from([row.owner_id for row in world.rows[:PEOPLE]])
    own: dict[str, st.SearchStrategy[Any]] = {
        "source": st.sampled_from(["chat", "api", "cli"]) | st.just({"$in": ["api", "upload"]}),
        "said": times,
        "said_by": owner | st.lists(owner).map(lambda v: {"$in": v}),
        "thread": thread,
        "session": thread,
        "space": st.sampled_from([row.space_id for row in world.rows[:PEOPLE]]),
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


def test_database_index_and_plain_reading_agree(world):
    said_to_the_index = 0

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(filters_on(world))
    def agree(filters: dict[str, Any]) -> None:
        nonlocal said_to_the_index
        expected = {str(row.id) for row in world.rows if read_plainly(filters, row)}
        assert in_sql(filters) == expected
        found = in_the_index(filters)
        assert found is None or found == expected
        said_to_the_index += found is not None

    agree()
    assert said_to_the_index >= 20


def test_where_few_can_fulfil_a_filter_all_that_do_are_among_them(world):
    told = 0

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(filters_on(world), st.sampled_from([3, 30]))
    def hold(filters: dict[str, Any], most: int) -> None:
        nonlocal told
        found = ids_if_selective(parse_filter(filters), most)
        told += found is not None
        if found is not None:
            assert len(found) <= most
            assert {str(row.id) for row in world.rows if read_plainly(filters, row)} <= set(map(str, found))

    hold()
    assert told >= 10


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
def test_each_field_of_an_exchange_can_be_asked_for(world, filters, negated):
    filters = {"$not": filters} if negated else filters
    expected = {str(row.id) for row in world.rows if read_plainly(filters, row)}

    assert in_sql(filters) == expected
    assert in_the_index(filters) in (expected, None)


def test_no_filter_reaches_into_another_space(world):
    readable = frozenset({world.rows[0].space_id})
    mine = {row.id for row in world.rows if row.space_id in readable}

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(filters_on(world))
    def stay(filters: dict[str, Any]) -> None:
        rows = access.in_spaces(Exchange.objects.all(), readable).filter(to_sql(parse_filter(filters)))
        assert set(rows.values_list("id", flat=True)) <= mine

    stay()


@pytest.mark.parametrize("shape", ["{other}", "or everything", "not mine", "nothing excluded"])
def test_asking_for_another_space_gives_nothing_of_it(world, shape):
    readable, other = frozenset({world.rows[0].space_id}), world.rows[1].space_id
    asked: dict[str, Any] = {
        "{other}": {"space": other},
        "or everything": {"$or": [{"space": other}, {"$not": {"zone": "no such zone"}}]},
        "not mine": {"$not": {"space": world.rows[0].space_id}},
        "nothing excluded": {"$not": {"space": {"$in": []}}},
    }[shape]
    assert str(world.rows[1].id) in in_sql(asked), "the filter alone would let it through"

    seen = access.in_spaces(Exchange.objects.all(), readable).filter(to_sql(parse_filter(asked)))

    assert all(row.space_id in readable for row in seen)


@pytest.fixture
def one(world):
    """One more exchange, with metadata that the tests name."""
    row = Exchange.objects.create(
        space_id=world.rows[0].space_id,
        owner_id=world.rows[0].owner_id,
        user_message="anything",
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
    return str(row.id) in in_sql(filters)


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
def test_a_filter_says_what_it_seems_to_say(one, filters, matches):
    assert lets_through(filters, one) == matches


def deep(levels: int) -> dict[str, Any]:
    return {"zone": "DMZ"} if levels == 1 else {"$not": deep(levels - 1)}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({}, "at least one condition"),
        ("zone = DMZ", "is a mapping"),
        ({"$and": []}, r"\$and takes a list of filters"),
        ({"$or": {"zone": "DMZ"}}, r"\$or takes a list of filters"),
        ({"$not": []}, "is a mapping"),
        ({"$nor": [{"zone": "DMZ"}]}, r"\$and, \$or and \$not"),
        ({3: "DMZ"}, "There is no 3"),
        ({"zone": {}}, "zone is compared with nothing"),
        ({"zone": {"$like": "D%"}}, r"zone cannot be compared by '\$like': .*\$in, \$contains, \$gt"),
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
        ({"source": {"$contains": "api"}}, r"source cannot be compared by '\$contains': there are equality and \$in"),
        ({"said": {"$gt": "yesterday"}}, "said is compared with a time such as"),
        ({"said": {"$gt": "0001-01-01T00:00:00+14:00"}}, "said is compared with a time such as"),
        ({"said": 3}, "said is compared with a time such as"),
        ({"thread": "x"}, "thread is compared with an id"),
        ({"space": {"$gt": 1}}, "space cannot be compared by"),
        ({"manual_entry": 1}, "manual_entry is compared with true or false"),
        ({"source_file": 1}, "source_file is compared with a text"),
        (deep(9), "at most 8 levels"),
        ({"$or": [{"zone": "DMZ"}] * 101}, "at most 100 conditions"),
        ({"$or": [{"zone": {"$in": ["x"] * 1000}}] * 11}, "at most 10000 values"),
    ],
)
def test_a_filter_that_cannot_be_meant_says_what_is_allowed(filters, message):
    with pytest.raises(InvalidInputError, match=message):
        parse_filter(filters)


def test_the_largest_filter_there_may_be_can_be_asked_of_both(world):
    members = [float(n) for n in range(100)]
    widest: dict[str, Any] = {"$or": [{f"key {n}": {"$in": members}} for n in range(99)] + [{"version": 3}]}
    expected = {str(row.id) for row in world.rows if same(row.metadata.get("version"), 3)}
    assert expected

    assert in_sql(widest) == expected
    assert in_the_index(widest) == expected
    assert in_sql({"$not": widest}) == in_the_index({"$not": widest}) == world.ids(world.rows) - expected
    assert in_sql(deep(8)) == in_the_index(deep(8))


def test_texts_in_a_filter_are_cleaned_as_metadata_was(one):
    assert lets_through({"zone": "D\x00MZ"}, one)
    assert lets_through({"zo\x00ne": "DMZ"}, one)


@pytest.mark.parametrize(
    "hostile", ["'; DROP TABLE memory_exchange; --", '"', "key__in", "\\", "%s", "{}", "\ud800", "‮"]
)
def test_hostile_keys_and_values_are_keys_and_values(one, hostile):
    one.metadata = validate_metadata({hostile: hostile})
    save_metadata_values([one])

    assert lets_through({hostile: hostile}, one)
    assert not lets_through({hostile: "another"}, one)


def test_metadata_rows_are_written_for_many_at_once_and_replaced(one, world, django_assert_num_queries):
    one.metadata = {"zone": "LAN"}

    with django_assert_num_queries(2):
        save_metadata_values([one, *world.rows[:5]])

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
def test_metadata_that_cannot_be_kept_says_what_can(metadata, message):
    with pytest.raises(InvalidInputError, match=message):
        validate_metadata(metadata)


def test_metadata_that_can_be_kept_comes_back_cleaned_and_otherwise_the_same():
    given_metadata = {"zo\x00ne": "a\r\nb", "tags": ("x", "y"), "none": [], "n": [1, 2.5], "live": False, "at": 2**60}

    assert validate_metadata(given_metadata) == {
        "zone": "a\nb",
        "tags": ["x", "y"],
        "none": [],
        "n": [1, 2.5],
        "live": False,
        "at": 2**60,
    }
