"""Texts to embed for an exchange: the whole exchange with its preceding context, and pieces of each message.

A query is often similar to only one message, or matches an exchange only with its context. The vector with the highest
similarity counts. Long messages are split because a model reads at most about a page.
"""

from __future__ import annotations

from memory.documents.chunking import Span, split
from memory.index.vectors import MAX_ANSWER_PARTS, MAX_MESSAGE_PARTS
from memory.models import Exchange
from memory.text import content_hash

# Characters. The local model reads 256 tokens, which is about this length.
_PIECE = 1000
_CONTEXT = 300
# Limit in characters for a text sent to any model. Endpoints read 16 kB at most. A message can have megabytes, for
# which a tokenizer would need hundreds of megabytes of memory.
_READ = 16_384


def embedding_texts(exchange: Exchange) -> list[str]:
    """Return the texts to embed for this exchange, at most one for each of PARTS.

    A note or chunk gives one text. A conversation gives the whole exchange after the context of the previous one, then
    the pieces of both messages. Load `exchange.previous` beforehand to avoid a query.
    """
    context = _context(exchange)
    before = f"{context}\n" if context else ""
    if not exchange.assistant_message:
        return [(before + exchange.user_message[:_READ])[:_READ]]
    whole = f"{before}User: {exchange.user_message[:_READ]}\nAssistant: {exchange.assistant_message[:_READ]}"
    message = _pieces(exchange.user_message, MAX_MESSAGE_PARTS)
    return [whole[:_READ], *message, *_pieces(exchange.assistant_message, MAX_ANSWER_PARTS)]


def embedding_hash(exchange: Exchange) -> str:
    """Return the hash of both messages and the context, on which the vectors depend."""
    return content_hash(exchange.user_message, exchange.assistant_message, _context(exchange))


def _context(exchange: Exchange) -> str:
    """Return the previous exchange of the session, shortened to its first and last 150 characters."""
    before = exchange.previous
    if exchange.session_id is None or before is None or before.forgotten_at or before.space_id != exchange.space_id:
        return ""
    text = f"{before.user_message}\n{before.assistant_message}".strip()
    return text if len(text) <= _CONTEXT else f"{text[: _CONTEXT // 2]} … {text[-_CONTEXT // 2 :]}"


def _pieces(text: str, limit: int) -> list[str]:
    """Return the first `most` pieces of the text; read only the first `most` + 1 piece lengths of it."""
    text = text[: (limit + 1) * _PIECE]
    if len(text) <= _PIECE:
        return [text]
    spans: list[Span] = split(
        text,
        strategy="hybrid",
        chunk_size=_PIECE,
        chunk_overlap=0,
        max_chunk_size=_PIECE,
        preserve_sentence_boundaries=True,
    )
    return [text[span.start : span.end] for span in spans[:limit]]
