"""The sentences of a message with their document vectors, which show some traits more clearly than its query vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.documents.chunking.sentences import sentences
from memory.embeddings.base import Vectors
from memory.index import generations
from memory.retrieval import probes
from memory.retrieval.query_embedding import embed_each_async
from memory.retrieval.types import Query

# Longer messages are texts to work on. Their vector represents only their beginning and end.
_MAX_MESSAGE_LENGTH, _MAX_SENTENCES = 1000, 8


@dataclass(frozen=True, slots=True)
class MessageSentences:
    """The sentences of a message; `get_vectors` waits for the vectors of the whole and, if it has several, of each."""

    parts: Sequence[str]
    query: Query
    get_vectors: Callable[[], Vectors | None]

    def read(self, trait: str) -> list[float] | None:
        """Return the probability of a trait for the whole message and, if it has several sentences, for each of them.

        Return None if the embedding model does not answer or has no probes yet. Reading the probes may use the database.
        """
        vectors = self.get_vectors()
        if vectors is None:
            return None
        generation = self.query.generation
        return probes.read_document_trait(trait, vectors, generation.provider, generation.model)


def embed_sentences(message: str, query: Query) -> MessageSentences | None:
    """Start to embed the sentences of a message; return None if it is empty, too long, or not to be embedded.

    `query` is the recall of this message alone.
    """
    is_read = query.is_embedded and len(message) <= _MAX_MESSAGE_LENGTH
    parts = split_sentences(message) if is_read else []
    if not 1 <= len(parts) <= _MAX_SENTENCES:
        return None
    texts = parts if len(parts) == 1 else [" ".join(parts), *parts]
    return MessageSentences(parts, query, embed_each_async(texts, generations.embedder_for(query.generation)))


def split_sentences(message: str) -> list[str]:
    """Return the sentences of a message, each on one line; a line break ends a sentence as well."""
    return [
        " ".join(line[span.start : span.end].split())
        for line in message.splitlines()
        for span in sentences(line, 0, len(line))
    ]
