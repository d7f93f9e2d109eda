"""Fill a store to a given size through Cato's own API, without embedding every text.

Texts are words of the shipped model's vocabulary, which is ordered by frequency, drawn by Zipf's law; every
third word comes from the few words of a session's topic. An exchange has some 60 words, a name, a number and a date, a
session five exchanges. The first REAL exchanges are embedded. Every other one gets a mixture of two of these, part by
part, with a little noise, written into the embedding cache under the hash of its text; then `index_pending` works as
always. So times, memory and recall against exact search are realistic, but synthetic vectors do not represent their
texts.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
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
TOPIC = 12  # words of one topic
NOISE = 0.2  # length of the noise added to a mixture of length 1
WORDS = 20_000
WORD_START = "\u2581"  # begins the pieces that begin a word
STOP_WORDS = 150  # about as many of the most frequent words, of which questions consist
START = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 730
# Filters match a field with a value that one exchange in a thousand has, and one that every second has.
NARROW_SHARE, BROAD_SHARE = 1000, 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Spaces of the store: `person` reads all, most exchanges are in `own`, `small` has 1 %, three groups 3 % each."""

    person: User
    own: Space
    small: Space
    groups: tuple[Space, ...]

    def count_by_space(self, exchanges: int) -> dict[Space, int]:
        """Return how many of these exchanges belong into each space."""
        parts = {self.small: exchanges // 100} | {group: 3 * exchanges // 100 for group in self.groups}
        return parts | {self.own: exchanges - sum(parts.values())}


def lay_out(person: User) -> Layout:
    """Create the spaces, readable only by `person`."""
    from memory.models import Membership, Space
    from memory.spaces import access

    groups = [Space.objects.create(kind=Space.Kind.GROUP, name=f"Group {number}") for number in range(4)]
    Membership.objects.bulk_create([Membership(space=space, person=person) for space in groups])
    return Layout(person, access.personal_space(person.pk), groups[0], tuple(groups[1:]))


class Texts:
    """Generate texts from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = _vocabulary()
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(self._words))))
        self._stop_words = frozenset(self._words[:STOP_WORDS])
        self._names = [word.title() for word in self._words[2000:-1:40]]

    def exchanges(self, layout: Layout, space: Space, count: int) -> list[NewExchange]:
        """Return exchanges in sessions, to be remembered in `space`."""
        from memory.api import NewExchange

        groups = []
        for number in range(count):
            if number % SESSION == 0:
                session, moment = uuid.UUID(int=self._random.getrandbits(128)), self._random_time()
                topic = self.topic()
            moment += timedelta(minutes=2)
            message, answer = self.message_and_answer(topic)
            groups.append(
                NewExchange(
                    space=space,
                    owner_id=layout.person.pk,
                    user_message=message,
                    assistant_message=answer,
                    source="import",
                    timestamp=moment,
                    thread_id=session,
                    session_id=session,
                    metadata={
                        "shelf": self._random.randrange(NARROW_SHARE),
                        "side": self._random.randrange(BROAD_SHARE),
                    },
                )
            )
        return groups

    def topic(self) -> list[str]:
        """Return the words of a new topic."""
        return self._salient_words(self._random_text(4 * TOPIC))[:TOPIC]

    def message_and_answer(self, topic: Sequence[str]) -> tuple[str, str]:
        """Return a message and its answer on this topic."""
        suffix = (
            f"{self._random.choice(self._names)} {self._random.randrange(10_000)} on {self._random_time():%d %B %Y}"
        )
        message = f"{self._random_text(16, topic)} {suffix}?"
        return message, f"{self._random.choice(self._names)} {self._random_text(40, topic)}."

    def questions(self) -> Iterator[str]:
        """Yield different questions, alternately with words of a stored text and of the vocabulary."""
        from memory.models import Exchange

        stored = Exchange.objects.order_by("timestamp", "id").values_list("assistant_message", flat=True)[:500]
        salient = [self._salient_words(text.rstrip(".")) for text in stored]
        while True:
            words = self._random.choice(salient)
            yield f"What did we say about {' '.join(self._random.sample(words, min(6, len(words))))}?"
            words = self._salient_words(self._random_text(30))[:5]
            yield f"What did {self._random.choice(self._names)} say about {' '.join(words)}?"

    def _salient_words(self, text: str) -> list[str]:
        return [word for word in text.split() if word not in self._stop_words]

    def _random_text(self, count: int, topic: Sequence[str] = ()) -> str:
        words = self._random.choices(self._words, cum_weights=self._weights, k=count)
        return " ".join(self._random.choice(topic) if topic and n % 3 == 0 else word for n, word in enumerate(words))

    def _random_time(self) -> datetime:
        return START + timedelta(minutes=self._random.randrange(DAYS * 24 * 60))


def fill(layout: Layout, texts: Texts, exchanges: int, *, seconds: float) -> bool:
    """Fill each space until the store has this many exchanges; return False if that takes more than `seconds`."""
    from memory import api
    from memory.models import Exchange

    started = time.monotonic()
    numbers = np.random.default_rng(exchanges)
    for space, expected in layout.count_by_space(exchanges).items():
        while missing := expected - Exchange.objects.filter(space=space).count():
            if time.monotonic() - started > seconds:
                return False
            stored_count = Exchange.objects.count()
            # A batch is either embedded or synthetic.
            count = min(BATCH, missing, REAL - stored_count if stored_count < REAL else missing)
            stored = api.remember_many(texts.exchanges(layout, space, count))
            if stored_count >= REAL:
                _cache_mixtures(stored, numbers)
            done = api.index_pending()
            # More if a space outgrew its shared collection.
            assert done >= count, f"{done} of {count} exchanges were indexed"
    _gather_statistics()
    return True


def _gather_statistics() -> None:
    """Do what PostgreSQL's autovacuum does within a minute of many inserts.

    Until then the planner scans all terms instead of using the index, which is a hundred times slower.
    """
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def _cache_mixtures(exchanges: list[Exchange], numbers: np.random.Generator) -> None:
    """Write a mixture of two embedded exchanges' vectors into the cache for each exchange."""
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
    """Return the cosine of each text's best vector to each question (texts, questions), by content hash, exactly."""
    best = np.empty((len(hashes), len(questions)), dtype=np.float32)
    for start in range(0, len(hashes), BATCH):
        some = hashes[start : start + BATCH]
        vectors = _vectors_of(some)
        best[start : start + BATCH] = [(vectors[digest] @ questions.T).max(axis=0) for digest in some]
    return best


def _real_vectors() -> Vectors:
    """Return the vectors (REAL, parts, dimension) of the embedded exchanges."""
    from memory.models import CachedEmbedding

    first = list(CachedEmbedding.objects.order_by("id").values_list("content_hash", flat=True)[:REAL])
    return np.stack(list(_vectors_of(first).values()))


def _vectors_of(hashes: list[str]) -> dict[str, Vectors]:
    """Return the vectors (parts, dimension) of these texts, by content hash."""
    from memory.embeddings import cache
    from memory.index import generations

    generation = generations.active_generation()
    return cache.get_documents(generation.provider, generation.model, hashes)


def _vocabulary() -> list[str]:
    """Return the most frequent whole words in the shipped model's vocabulary, the most frequent first."""
    from sentencepiece import SentencePieceProcessor

    from memory.embeddings import multilingual_e5

    processor = SentencePieceProcessor(model_file=str(multilingual_e5.folder() / "sentencepiece.bpe.model"))
    pieces = (processor.id_to_piece(id) for id in range(processor.get_piece_size()))
    words = (piece[1:].lower() for piece in pieces if piece.startswith(WORD_START))
    return list(dict.fromkeys(word for word in words if word.isascii() and word.isalpha() and len(word) > 1))[:WORDS]
