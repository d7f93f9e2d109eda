"""Texts to embed for an exchange: the whole exchange with its preceding context, and pieces of each message.

A query is often similar to only one message, or matches an exchange only with its context. The vector with the highest
similarity counts. Long messages are split because a model reads at most about a page.
"""

from __future__ import annotations

from itertools import islice

from memory.documents.chunking import split
from memory.documents.chunking.lengths import MODEL_LENGTH, fits
from memory.index.vectors import MAX_ANSWER_PARTS, MAX_MESSAGE_PARTS
from memory.models import Exchange
from memory.text import content_hash

_CONTEXT_CHARS = 300
# Limit in characters for a text that is given to any model. Remote models get at most 16 kB of it. A message can have
# megabytes, for which a tokenizer would need hundreds of megabytes of memory.
_MAX_CHARS = 16_384


def embedding_texts(exchange: Exchange) -> list[str]:
    """Return the texts to embed for this exchange, at most one for each name in `vectors.PARTS`.

    A note or chunk gives one text. A message with an answer gives the whole exchange after the context of the previous
    one, then the pieces of both texts. Load `exchange.previous` beforehand to avoid a query.
    """
    context = _context(exchange)
    prefix = f"{context}\n" if context else ""
    if not exchange.assistant_message:
        return [(prefix + exchange.user_message[:_MAX_CHARS])[:_MAX_CHARS]]
    whole = f"{prefix}User: {exchange.user_message[:_MAX_CHARS]}\nAssistant: {exchange.assistant_message[:_MAX_CHARS]}"
    message = _pieces(exchange.user_message, MAX_MESSAGE_PARTS)
    return [whole[:_MAX_CHARS], *message, *_pieces(exchange.assistant_message, MAX_ANSWER_PARTS)]


def embedding_hash(exchange: Exchange) -> str:
    """Return the hash of both messages and the context, on which the vectors depend."""
    return content_hash(exchange.user_message, exchange.assistant_message, _context(exchange))


def _context(exchange: Exchange) -> str:
    """Return the previous exchange, shortened to its first and last 150 characters; "" outside a session."""
    previous = exchange.previous
    if (
        exchange.session_id is None
        or previous is None
        or previous.forgotten_at
        or previous.space_id != exchange.space_id
    ):
        return ""
    text = f"{previous.user_message}\n{previous.assistant_message}".strip()
    return text if len(text) <= _CONTEXT_CHARS else f"{text[: _CONTEXT_CHARS // 2]} … {text[-_CONTEXT_CHARS // 2 :]}"


def _pieces(text: str, limit: int) -> list[str]:
    """Return the first `limit` pieces of the text; read only the first `limit` + 1 piece lengths of it."""
    text = text[: (limit + 1) * MODEL_LENGTH]
    if fits(text, 0, len(text), MODEL_LENGTH):
        return [text]
    spans = split(
        text,
        strategy="hybrid",
        chunk_size=MODEL_LENGTH,
        chunk_overlap=0,
        max_chunk_size=MODEL_LENGTH,
        preserve_sentence_boundaries=True,
    )
    return [text[span.start : span.end] for span in islice(spans, limit)]
